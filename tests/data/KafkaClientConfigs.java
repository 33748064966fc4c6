/* Writes kafka-client-configs-4.2.0.json: what Apache Kafka's clients say of their settings, one line for each.

   java -cp 'kafka-4.2.0/*' KafkaClientConfigs.java > kafka-client-configs-4.2.0.json */

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

public class KafkaClientConfigs {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        List<String> parts = new ArrayList<>();
        parts.add(part("producer", ProducerConfig.configDef()));
        parts.add(part("consumer", ConsumerConfig.configDef()));
        parts.add(part("admin", AdminClientConfig.configDef()));
        System.out.println("{\n" + String.join(",\n", parts) + "\n}");
    }

    static String part(String name, ConfigDef def) throws Exception {
        List<String> lines = new ArrayList<>();
        for (ConfigDef.ConfigKey key : new TreeMap<>(def.configKeys()).values()) {
            Map<String, Object> fact = new LinkedHashMap<>();
            fact.put("type", key.type.name());
            fact.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            fact.put("required", !key.hasDefault());
            fact.put("valid", key.validator == null ? "" : key.validator.toString());
            fact.put("importance", key.importance.name());
            fact.put("internal", key.internalConfig);
            lines.add("  " + JSON.writeValueAsString(key.name) + ": " + JSON.writeValueAsString(fact));
        }
        return " " + JSON.writeValueAsString(name) + ": {\n" + String.join(",\n", lines) + "\n }";
    }
}
