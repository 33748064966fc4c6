import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** What Kafka's consumer says of a topic, a line for each question: the arguments are the broker, the topic, and times to look for. */
public class ConsumerOracle {
    public static void main(String[] arguments) {
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        for (String isolation : List.of("read_uncommitted", "read_committed")) {
            try (KafkaConsumer<String, String> consumer = consumer(arguments[0], Map.of("isolation.level", isolation))) {
                consumer.assign(List.of(partition));
                long end = consumer.endOffsets(List.of(partition)).get(partition);
                System.out.println(isolation + " begins " + consumer.beginningOffsets(List.of(partition)).get(partition) + " ends " + end);
                for (int argument = 2; argument < arguments.length; argument++) {
                    long time = Long.parseLong(arguments[argument]);
                    OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
                    System.out.println(isolation + " at " + time + " " + (found == null ? "none" : found.offset() + " " + found.timestamp() + " " + found.leaderEpoch().orElse(-1)));
                }
                Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                while (consumer.position(partition) < end) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                    for (ConsumerRecord<String, String> record : records)
                        System.out.println(isolation + " " + shown(record));
                    next.putAll(records.nextOffsets());
                }
                System.out.println(isolation + " stands at " + consumer.position(partition) + " lag " + consumer.currentLag(partition).orElse(-1)
                    + " next " + next.get(partition).offset() + " " + next.get(partition).leaderEpoch().orElse(-1));
            }
        }
        for (String reset : List.of("earliest", "latest", "by_duration:PT1H", "by_duration:P10D")) {
            try (KafkaConsumer<String, String> consumer = consumer(arguments[0], Map.of("auto.offset.reset", reset))) {
                consumer.assign(List.of(partition));
                System.out.println(reset + " begins at " + consumer.position(partition));
            }
        }
    }

    private static String shown(ConsumerRecord<String, String> record) {
        List<String> headers = new ArrayList<>();
        record.headers().forEach(header -> headers.add(header.key() + "=" + (header.value() == null ? "null" : new String(header.value()))));
        return record.offset() + " " + record.timestampType() + " " + record.timestamp() + " " + record.serializedKeySize() + " "
            + record.serializedValueSize() + " " + record.key() + " " + record.value() + " " + headers + " " + record.leaderEpoch().orElse(-1);
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, Map<String, String> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.putIfAbsent("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }
}
