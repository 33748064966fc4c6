/* Writes kafka-configs-4.2.0.json: what Apache Kafka says of its settings, and how a broker of it describes them. Start a fresh broker,

     kafka-peer/start.sh DIR 29392 log.retention.hours=24 log.roll.ms=3600000 my.own=5 listener.name.plaintext.ssl.keystore.password=secret \
       ssl.keystore.password=secret2 log.flush.scheduler.interval.ms=4000 min.insync.replicas=1

   then: java -cp 'kafka-4.2.0/*' KafkaConfigs.java 127.0.0.1:29392 DIR > kafka-configs-4.2.0.json */

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileReader;
import java.util.*;
import kafka.server.DynamicBrokerConfig$;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.server.config.*;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.jdk.javaapi.CollectionConverters;

public class KafkaConfigs {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        DynamicBrokerConfig$ dynamic = DynamicBrokerConfig$.MODULE$;
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("broker", definitions(AbstractKafkaConfig.CONFIG_DEF, dynamic.dynamicConfigUpdateModes()));
        facts.put("dynamic_only", definitions(QuotaConfig.brokerQuotaConfigs(), null));
        facts.put("topic", definitions(LogConfig.configDefCopy(), null));
        Map<String, Object> topicSynonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, synonyms) -> topicSynonyms.put(name,
            synonyms.stream().map(s -> List.of(s.name(), Long.parseLong(s.converter().apply("1")))).toList()));
        facts.put("topic_synonyms", topicSynonyms);
        Map<String, Object> brokerSynonyms = new TreeMap<>();
        for (String name : AbstractKafkaConfig.CONFIG_DEF.names()) {
            List<String> synonyms = CollectionConverters.asJava(dynamic.brokerConfigSynonyms(name, true));
            if (!synonyms.equals(List.of(name))) brokerSynonyms.put(name, synonyms);
        }
        facts.put("broker_synonyms", brokerSynonyms);
        facts.put("described", described(args[0], args[1]));
        System.out.println(text(facts, 0).replace(args[1] + "/logs", "/data/logs"));
        System.exit(0);
    }

    static Map<String, Object> definitions(ConfigDef def, Map<String, String> modes) {
        Map<String, Object> found = new TreeMap<>();
        for (ConfigDef.ConfigKey key : def.configKeys().values()) {
            Map<String, Object> fact = new LinkedHashMap<>();
            fact.put("type", key.type.name());
            fact.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            fact.put("required", !key.hasDefault());
            fact.put("valid", key.validator == null ? "" : key.validator.toString());
            fact.put("importance", key.importance.name());
            fact.put("internal", key.internalConfig);
            if (modes != null) fact.put("update_mode", modes.getOrDefault(key.name, "read-only"));
            found.put(key.name, fact);
        }
        return found;
    }

    static Map<String, Object> described(String address, String directory) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileReader(directory + "/server.properties"));
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1"), all = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "t");
        Map<String, String> ofTopic = new TreeMap<>(Map.of("cleanup.policy", "compact", "flush.messages", "7"));
        // A broker with eligible leader replicas writes this one by itself.
        Map<String, String> ofAll = new TreeMap<>(Map.of("min.insync.replicas", "1"));
        Map<String, String> ofBroker = Map.of("log.retention.ms", "100000", "log.cleaner.min.cleanable.ratio", "0.25",
            "listener.name.plaintext.max.connections", "77", "leader.replication.throttled.rate", "500");
        Map<String, Object> found = new LinkedHashMap<>();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic("t", 1, (short) 1).configs(ofTopic))).all().get();
            found.put("server_properties", new TreeMap<>(properties));
            found.put("broker_config", new TreeMap<>(ofBroker));
            found.put("default_config_before", Map.copyOf(ofAll));
            found.put("topic_config_before", new TreeMap<>(ofTopic));
            found.put("broker_static", describe(admin, broker));
            found.put("topic_static", describe(admin, topic));
            ofAll.putAll(Map.of("log.retention.ms", "200000", "log.cleaner.threads", "2", "log.segment.bytes", "2000000", "message.max.bytes", "5000"));
            ofTopic.putAll(Map.of("retention.ms", "5", "max.message.bytes", "600"));
            found.put("default_config", ofAll);
            found.put("topic_config", ofTopic);
            alter(admin, broker, ofBroker);
            alter(admin, all, ofAll);
            alter(admin, topic, ofTopic);
            Thread.sleep(2000);
            found.put("broker_dynamic", describe(admin, broker));
            found.put("default_dynamic", describe(admin, all));
            found.put("topic_dynamic", describe(admin, topic));
        }
        return found;
    }

    static void alter(Admin admin, ConfigResource resource, Map<String, String> configs) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, configs.entrySet().stream()
            .map(e -> new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue()), AlterConfigOp.OpType.SET)).toList())).all().get();
    }

    static Map<String, Object> describe(Admin admin, ConfigResource resource) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true);
        for (ConfigEntry e : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries())
            found.put(e.name(), Arrays.asList(e.value(), e.source().name(), e.isSensitive(), e.isReadOnly(), e.type().name(),
                e.synonyms().stream().map(s -> Arrays.asList(s.name(), s.value(), s.source().name())).toList()));
        return found;
    }

    /* JSON with a line for each setting. */
    static String text(Object value, int depth) throws Exception {
        boolean open = depth < 2 || depth == 2 && value instanceof Map<?, ?> m && m.values().stream().anyMatch(v -> v instanceof List);
        if (!(value instanceof Map<?, ?> map) || !open) return JSON.writeValueAsString(value);
        List<String> lines = new ArrayList<>();
        for (Map.Entry<?, ?> e : map.entrySet())
            lines.add(" ".repeat(depth + 1) + JSON.writeValueAsString(e.getKey()) + ": " + text(e.getValue(), depth + 1));
        return "{\n" + String.join(",\n", lines) + "\n" + " ".repeat(depth) + "}";
    }
}
