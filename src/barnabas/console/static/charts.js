// Charts over time with uPlot. A figure has its data in data-columns, [times in s, values, …]; `charts.update` replaces them.
"use strict";

const charts = (() => {
  const drawn = new Map(); // figure -> {plot, labels, unit}
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const units = {
    bytes: { steps: ["B", "kB", "MB", "GB", "TB", "PB"], suffix: "/s" },
    records: { steps: ["", " k", " M", " G", " T"], suffix: " records/s" },
    lag: { steps: ["", " k", " M", " G", " T"], suffix: " records" },
  };

  function scaled(value, unit) {
    if (value === null || value === undefined) return "–";
    const kind = units[unit] || { steps: ["", " k", " M", " G", " T"], suffix: unit ? ` ${unit}` : "" };
    let step = 0;
    while (Math.abs(value) >= 999.5 && step < kind.steps.length - 1) { value /= 1000; step += 1; }
    const digits = Math.abs(value) >= 99.95 || Number.isInteger(value) ? 0 : 1;
    const name = unit === "bytes" ? ` ${kind.steps[step]}` : kind.steps[step];
    return `${value.toFixed(digits)}${name}${kind.suffix}`;
  }

  function keys(figure, labels, unit, columns, index) {
    const caption = figure.querySelector("figcaption");
    caption.querySelectorAll(".chart-key").forEach((key) => key.remove());
    labels.forEach((label, at) => {
      const values = columns[at + 1] || [];
      const value = index === null || index === undefined ? values.findLast((one) => one !== null) : values[index];
      const key = document.createElement("span");
      key.className = "chart-key";
      const line = document.createElement("i");
      line.className = `c${at + 1}`;
      key.append(line, `${label} ${scaled(value, unit)}`);
      caption.append(key);
    });
  }

  function draw(figure) {
    if (drawn.has(figure) || typeof uPlot === "undefined") return;
    const labels = JSON.parse(figure.dataset.labels);
    const columns = JSON.parse(figure.dataset.columns);
    const unit = figure.dataset.unit;
    const area = figure.querySelector(".chart-area");
    const hasValues = columns.slice(1).some((values) => values.some((value) => value !== null));
    area.classList.toggle("waiting", !hasValues);
    area.textContent = hasValues ? "" : "Being measured: the line begins in some seconds.";
    if (!hasValues) { keys(figure, labels, unit, columns, null); return; }
    const axis = { stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { stroke: token("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const fill = (color) => (typeof CSS !== "undefined" && CSS.supports("color", "color-mix(in srgb, red 10%, transparent)") ? `${color}1a` : undefined);
    const chart = { labels, unit, columns };
    const plot = new uPlot({
      width: Math.max(120, area.clientWidth),
      height: area.clientHeight,
      padding: [8, 30, 0, 0],
      cursor: { points: { size: 7 }, y: false },
      legend: { show: false },
      scales: { y: { range: (_, low, high) => [Math.min(0, low || 0), high > 0 ? high * 1.15 : 1] } },
      axes: [
        { ...axis, space: 95, size: 34, values: (_, times) => times.map((t) => new Date(t * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: times.length > 1 && times[1] - times[0] < 60 ? "2-digit" : undefined })) },
        { ...axis, size: 64, values: (_, values) => values.map((value) => scaled(value, unit).replace(/ records(\/s)?$/, "")) },
      ],
      series: [{}, ...labels.map((label, at) => ({ label, stroke: token(`--chart-${at + 1}`), width: 1.75, fill: at === 0 ? fill(token("--chart-1")) : undefined, spanGaps: true, points: { show: (one, at) => one.data[at].filter((value) => value !== null).length < 3 } }))],
      hooks: { setCursor: [(one) => keys(figure, labels, unit, chart.columns, one.cursor.idx)] },
    }, columns, area);
    chart.plot = plot;
    drawn.set(figure, chart);
    keys(figure, labels, unit, columns, null);
  }

  function drawAll(root) {
    for (const figure of [...drawn.keys()]) if (!figure.isConnected) { drawn.get(figure).plot.destroy(); drawn.delete(figure); }
    (root || document).querySelectorAll("figure.chart[data-columns]").forEach(draw);
  }

  function update(name, columns) {
    for (const figure of document.querySelectorAll(`figure.chart[data-chart="${CSS.escape(name)}"]`)) {
      const chart = drawn.get(figure);
      if (!chart) { figure.dataset.columns = JSON.stringify(columns); draw(figure); continue; }
      chart.columns = columns;
      chart.plot.setData(columns);
      keys(figure, chart.labels, chart.unit, columns, null);
    }
  }

  function redraw() {
    for (const [figure, chart] of [...drawn]) {
      figure.dataset.columns = JSON.stringify(chart.columns);
      chart.plot.destroy();
      drawn.delete(figure);
    }
    drawAll();
  }

  new ResizeObserver(() => {
    for (const [figure, chart] of drawn) {
      const area = figure.querySelector(".chart-area");
      if (area.clientWidth && area.clientWidth !== chart.plot.width) chart.plot.setSize({ width: area.clientWidth, height: area.clientHeight });
    }
  }).observe(document.documentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return { drawAll, update };
})();
