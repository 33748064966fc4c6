// What pages do in the browser: times in the reader's zone, live parts by server-sent events, the keyboard, and questions before changes.
"use strict";

(() => {
  const prefix = () => document.body.dataset.prefix || "";
  const editable = (element) => element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

  // Times: the server writes UTC; the reader's zone replaces the text, the exact time stays in the title.
  const shortTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  function ago(date) {
    const seconds = (date - Date.now()) / 1000;
    for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
      if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
    }
    return relative.format(Math.round(seconds), "second");
  }
  function showTimes(root) {
    root.querySelectorAll("time[datetime]").forEach((element) => {
      const date = new Date(element.dateTime);
      if (Number.isNaN(date.getTime())) return;
      element.textContent = "ago" in element.dataset ? ago(date) : shortTime.format(date);
    });
  }

  // Times that people enter are in their zone: the server gets them with its offset at that time.
  const localTime = /^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;
  function zoned(text) {
    const time = text.trim();
    if (!localTime.test(time)) return text;
    const minutes = -new Date(time.length > 10 ? time.replace(" ", "T") : `${time}T00:00`).getTimezoneOffset();
    if (Number.isNaN(minutes)) return text;
    const two = (number) => String(Math.floor(number)).padStart(2, "0");
    const size = Math.abs(minutes);
    return `${time.length > 10 ? time : `${time} 00:00`}${minutes < 0 ? "-" : "+"}${two(size / 60)}:${two(size % 60)}`;
  }
  document.addEventListener("submit", (event) => {
    event.target.querySelectorAll("input[data-local-time]").forEach((input) => { input.value = zoned(input.value); });
  }, true);
  function showZone(root) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    root.querySelectorAll("[data-zone]").forEach((element) => { if (zone) element.textContent = `${element.dataset.zone}${zone}.`; });
  }

  // Live parts. A hidden tab closes its streams: browsers allow only six connections to a host.
  const streams = new Map(); // element -> EventSource
  const rowsMax = 500;
  function receiveAll(data) { // elements with ids, each with the new content of the element of its id
    const parts = document.createElement("template");
    parts.innerHTML = data;
    for (const part of parts.content.children) {
      const target = document.getElementById(part.id);
      if (target) replace(target, part.innerHTML);
    }
  }
  function replace(target, data) {
    const active = document.activeElement;
    if (target.contains(active) && editable(active)) return; // nobody types into what is replaced
    const focused = active && active !== target && target.contains(active) ? active.id || active.getAttribute("href") : null;
    target.innerHTML = data;
    if (focused) (document.getElementById(focused) || target.querySelector(`a[href="${CSS.escape(focused)}"]`))?.focus({ preventScroll: true });
    htmx.process(target);
    ready(target);
  }
  function receive(element, name, data) {
    const target = element.dataset.eventTarget ? document.querySelector(element.dataset.eventTarget) : element;
    if (!target) return;
    if (name === "fragment") replace(target, data);
    else {
      target.insertAdjacentHTML(name === "append" ? "beforeend" : "afterbegin", data);
      const keep = Number(element.dataset.keep) || rowsMax;
      while (target.children.length > keep) (name === "append" ? target.firstElementChild : target.lastElementChild).remove();
      htmx.process(target);
      ready(target);
    }
  }
  function open(element) {
    if (streams.has(element) || document.hidden || element.dataset.eventsDone) return;
    const source = new EventSource(element.dataset.events);
    streams.set(element, source);
    for (const name of ["fragment", "append", "prepend"]) source.addEventListener(name, (event) => receive(element, name, event.data));
    source.addEventListener("fragments", (event) => receiveAll(event.data));
    source.addEventListener("samples", (event) => { const samples = JSON.parse(event.data); charts.update(samples.chart, samples.columns); });
    source.addEventListener("status", (event) => { const place = document.querySelector(element.dataset.statusTarget || "#none"); if (place) place.textContent = event.data; });
    source.addEventListener("done", () => { element.dataset.eventsDone = "1"; close(element); });
  }
  function close(element) { streams.get(element)?.close(); streams.delete(element); }
  function syncStreams() {
    for (const element of [...streams.keys()]) if (!element.isConnected || document.hidden) close(element);
    document.querySelectorAll("[data-events]").forEach(open);
  }

  function ready(root) { showTimes(root); showZone(root); charts.drawAll(root); }

  // A question before a change, in a dialog of the page.
  function ask(question, then) {
    const dialog = document.getElementById("confirm");
    document.getElementById("confirm-question").textContent = question;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => { if (dialog.returnValue === "yes") then(); }, { once: true });
    dialog.showModal();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-confirm]");
    if (button && !button.dataset.confirmed) {
      event.preventDefault();
      event.stopImmediatePropagation();
      ask(button.dataset.confirm, () => { button.dataset.confirmed = "1"; button.click(); delete button.dataset.confirmed; });
      return;
    }
    if (event.target.closest(".help-button")) document.getElementById("help").showModal();
    const menuButton = event.target.closest(".menu-button");
    if (menuButton) {
      const isOpen = document.getElementById("menu").classList.toggle("open");
      menuButton.setAttribute("aria-expanded", String(isOpen));
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const source = document.querySelector(copy.dataset.copy);
      navigator.clipboard?.writeText(source ? source.textContent : copy.dataset.copyText || "").then(() => {
        const label = copy.textContent;
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = label; }, 1500);
      });
    }
    const all = event.target.closest("[data-check-all]");
    if (all) all.form.querySelectorAll(`input[type=checkbox][name="${CSS.escape(all.dataset.checkAll)}"]`).forEach((box) => { box.checked = all.checked; });
    if (!event.target.closest(".drop")) document.querySelectorAll(".drop[open]").forEach((drop) => drop.removeAttribute("open"));
  }, true);

  // A value is entered for the choice that it belongs to.
  document.addEventListener("input", (event) => {
    const choice = event.target.type === "radio" ? null : event.target.closest("fieldset .field")?.querySelector("input[type=radio]");
    if (choice) choice.checked = true;
  });

  // The keyboard.
  let leader = 0; // when g was pressed
  function rows() { return [...document.querySelectorAll("main table tbody tr")].filter((row) => row.querySelector("a[href]")); }
  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("chosen"));
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    all[at]?.classList.remove("chosen");
    next.classList.add("chosen");
    next.querySelector("a[href]").focus();
    next.scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (editable(document.activeElement)) event.preventDefault(); // the browser would clear a search
      document.activeElement?.blur();
      document.querySelectorAll(".drop[open]").forEach((drop) => drop.removeAttribute("open"));
      return;
    }
    if (editable(document.activeElement)) return;
    if (leader && event.timeStamp - leader < 1200) {
      leader = 0;
      const link = document.querySelector(`.menu a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); location.assign(link.href); }
      return;
    }
    if (event.key === "g") { leader = event.timeStamp; return; }
    if (event.key === "/") {
      event.preventDefault();
      const search = document.querySelector("main input[type=search], main input[data-search]");
      if (search) { search.focus(); search.select(); } else location.assign(`${prefix()}/topics?focus=search`);
    } else if (event.key === "?") document.getElementById("help").showModal();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
  });

  document.addEventListener("visibilitychange", syncStreams);
  document.addEventListener("htmx:afterSettle", (event) => { ready(event.detail.elt.isConnected ? event.detail.elt : document); syncStreams(); });
  window.addEventListener("pagehide", () => { for (const element of [...streams.keys()]) close(element); });
  window.addEventListener("pageshow", syncStreams);
  setInterval(() => showTimes(document), 30000);
  document.addEventListener("DOMContentLoaded", () => {
    ready(document);
    syncStreams();
    if (new URLSearchParams(location.search).get("focus") === "search") document.querySelector("main input[type=search]")?.focus();
  });
})();
