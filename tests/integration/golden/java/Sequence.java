// Writes to a fresh broker the batches that the logs in tests/data/golden-logs/kafka-4.2.0 were made of, except those that need groups or
// transactions. Keys, values, headers, timestamps and the ends of batches are fixed, so that the files of two brokers can be compared byte for byte.
//
//     Sequence BOOTSTRAP

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Sequence {
    static final long START_MS = 1_700_000_000_000L;

    final String bootstrap;
    final Admin admin;

    Sequence(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        Sequence sequence = new Sequence(arguments[0]);
        sequence.codecs();
        sequence.recompression();
        sequence.idempotence();
        sequence.manySegments();
        sequence.deletedRecords();
        sequence.compaction();
        sequence.admin.close();
    }

    void codecs() throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            create("g-" + codec, Map.of());
            try (Batches batches = new Batches("g-" + codec, "compression.type", codec)) {
                batches.threeKinds();
            }
        }
    }

    /** The topic wants another codec than the producer sent. */
    void recompression() throws Exception {
        create("g-recompress", Map.of("compression.type", "gzip"));
        create("g-uncompress", Map.of("compression.type", "uncompressed"));
        try (Batches batches = new Batches("g-recompress")) {
            batches.threeKinds();
        }
        try (Batches batches = new Batches("g-uncompress", "compression.type", "lz4")) {
            batches.threeKinds();
        }
    }

    /** Two producers, whose ids a fresh cluster hands out from 0 on. */
    void idempotence() throws Exception {
        create("g-idem", Map.of());
        for (int producer = 0; producer < 2; producer++) {
            try (Batches batches = new Batches("g-idem", "enable.idempotence", "true")) {
                for (int batch = 0; batch < 4; batch++) {
                    for (int i = 0; i <= batch; i++) batches.add(producer * 1000 + batch * 100 + i, "k" + i, text(batch));
                    batches.end();
                }
            }
        }
    }

    /** Segments are rolled by the timestamps of records. */
    void manySegments() throws Exception {
        create("g-multi", Map.of("segment.ms", "10000", "index.interval.bytes", "300"));
        try (Batches batches = new Batches("g-multi")) {
            for (int batch = 0; batch < 60; batch++) {
                for (int i = 0; i < 4; i++) batches.add(batch * 1000 + i * 37 % 11, "key-" + i, text(i + batch));
                batches.end();
            }
        }
    }

    void deletedRecords() throws Exception {
        create("g-delrec", Map.of());
        try (Batches batches = new Batches("g-delrec")) {
            batches.threeKinds();
        }
        admin.deleteRecords(Map.of(new TopicPartition("g-delrec", 0), RecordsToDelete.beforeOffset(11))).all().get();
    }

    /** Keys that come again and again, one of them deleted in the end; the last record closes the segment before it. */
    void compaction() throws Exception {
        Map<String, String> config = new HashMap<>(Map.of("cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01"));
        config.putAll(Map.of("segment.ms", "5000", "delete.retention.ms", "100000000", "index.interval.bytes", "200"));
        create("g-compact", config);
        try (Batches batches = new Batches("g-compact")) {
            for (int batch = 0; batch < 40; batch++) {
                for (int i = 0; i < 5; i++) {
                    int key = (batch * 5 + i) % 17;
                    batches.add(batch * 1000 + i, "key-" + key, key == 3 && batch > 25 ? null : text(i + batch));
                }
                batches.end();
            }
            batches.add(1_000_000, "last", "last");
            batches.end();
        }
    }

    void create(String topic, Map<String, String> config) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(config))).all().get();
    }

    static String text(int number) {
        return "value-" + number + "-" + "abcdefghij".repeat(number % 7);
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    /** A producer for partition 0 of one topic, whose batches end when they are told to. */
    class Batches implements AutoCloseable {
        final String topic;
        final KafkaProducer<byte[], byte[]> producer;
        volatile Exception problem;

        Batches(String topic, String... settings) {
            Properties properties = new Properties();
            properties.putAll(Map.of("bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", "false"));
            properties.putAll(Map.of("linger.ms", "60000", "batch.size", "1000000", "max.in.flight.requests.per.connection", "1"));
            for (int i = 0; i < settings.length; i += 2) properties.put(settings[i], settings[i + 1]);
            this.topic = topic;
            this.producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        }

        void add(long afterStartMs, String key, String value, String... headers) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, START_MS + afterStartMs, bytes(key), bytes(value));
            for (int i = 0; i < headers.length; i += 2) record.headers().add(headers[i], bytes(headers[i + 1]));
            producer.send(record, (metadata, error) -> problem = error != null ? error : problem);
        }

        void end() throws Exception {
            producer.flush();
            if (problem != null) throw problem;
        }

        /** Ten records with keys; one with neither key nor value; five with headers, the newest first. */
        void threeKinds() throws Exception {
            for (int i = 0; i < 10; i++) add(i * 10, "key-" + i, text(i));
            end();
            add(1000, null, null);
            end();
            for (int i = 0; i < 5; i++) add(2000 - i, "h" + i, text(i), "name", "x" + i, "empty", "", "null", null);
            end();
        }

        @Override
        public void close() {
            producer.close();
        }
    }
}
