import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer. "partitions": for each line "count key" (hex) of the input, the partition of the key.
 * "send" and "transactions", each with an address: sends what test_producer_java.py sends.
 */
public class ProducerOracle {
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "partitions" -> partitions();
            case "send" -> send(arguments[1], arguments[2]);
            case "transactions" -> transactions(arguments[1]);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    static void partitions() {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] line = lines.nextLine().split(" ", 2);
            System.out.println(BuiltInPartitioner.partitionForKey(HexFormat.of().parseHex(line[1]), Integer.parseInt(line[0])));
        }
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        all.put("enable.metrics.push", false);
        all.put("linger.ms", 60000);
        all.put("delivery.timeout.ms", 120000);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static void send(String bootstrap, String acks) {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, Map.of("acks", acks))) {
            RecordHeaders headers = new RecordHeaders();
            headers.add("h", bytes("1")).add("n", null);
            producer.send(new ProducerRecord<>("t", 0, 1700000000000L, bytes("key"), bytes("value"), headers));
            producer.send(new ProducerRecord<>("t", 0, 1700000000500L, null, bytes("later")));
            producer.send(new ProducerRecord<>("t", 0, 1699999999000L, bytes("tombstone"), (byte[]) null));
            producer.send(new ProducerRecord<>("t", 0, 1700000000001L, bytes(""), bytes("")));
            for (int number = 0; number < 200; number++) {
                producer.send(new ProducerRecord<>("t", 1, 1700000000000L + number, bytes("k" + number), bytes("value " + number)));
            }
        }
    }

    static void transactions(String bootstrap) {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, Map.of("transactional.id", "x"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("t", 0, 1700000000000L, null, bytes("one")));
            producer.flush();
            ConsumerGroupMetadata group = new ConsumerGroupMetadata("g", 3, "member", Optional.of("instance"));
            producer.sendOffsetsToTransaction(Map.of(new TopicPartition("t", 0), new OffsetAndMetadata(5, Optional.of(2), "note")), group);
            producer.commitTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("t", 0, 1700000000000L, null, bytes("two")));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("t", 0, 1700000000000L, null, bytes("three")));
            producer.flush();
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
