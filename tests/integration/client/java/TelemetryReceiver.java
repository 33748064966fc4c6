import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;

/**
 * A plugin of Apache Kafka's broker that writes down what clients push: a line for each push and, before it, one for each metric. The file is
 * the broker's setting telemetry.file.
 */
public class TelemetryReceiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private Path file;

    @Override
    public void configure(Map<String, ?> settings) {
        file = Path.of(String.valueOf(settings.get("telemetry.file")));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        StringBuilder written = new StringBuilder();
        try {
            for (ResourceMetrics resource : MetricsData.parseFrom(payload.data()).getResourceMetricsList()) {
                String labels = text(resource.getResource().getAttributesList());
                resource.getScopeMetricsList().forEach(scope -> scope.getMetricsList().forEach(each -> written.append(line(each, labels))));
            }
            written.append(String.join("\t", "push", payload.clientInstanceId().toString(), String.valueOf(payload.isTerminating()),
                payload.contentType(), context.clientId())).append('\n');
            Files.writeString(file, written, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    private static String line(Metric metric, String labels) {
        boolean isSum = metric.hasSum();
        NumberDataPoint point = isSum ? metric.getSum().getDataPoints(0) : metric.getGauge().getDataPoints(0);
        String kind = isSum ? metric.getSum().getAggregationTemporality().name() : "GAUGE";
        String value = point.hasAsInt() ? String.valueOf(point.getAsInt()) : String.valueOf(point.getAsDouble());
        return String.join("\t", "metric", metric.getName(), kind, value, text(point.getAttributesList()), labels) + "\n";
    }

    private static String text(List<KeyValue> attributes) {
        return String.join(",", attributes.stream().map(each -> each.getKey() + "=" + each.getValue().getStringValue()).sorted().toList());
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
