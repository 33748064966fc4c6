// A member of a consumer group that tells on stdout what it holds and reads, see member.py; it stops when its stdin ends.
//
//     BOOTSTRAP GROUP TOPIC STRATEGY INSTANCE        STRATEGY is an assignor of the classic protocol, or "consumer" for KIP-848's;
//                                                    INSTANCE is the id of a static member, or "-"

import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member implements ConsumerRebalanceListener {
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", "RangeAssignor",
        "roundrobin", "RoundRobinAssignor",
        "sticky", "StickyAssignor",
        "cooperative-sticky", "CooperativeStickyAssignor");
    static volatile boolean stopping;

    final KafkaConsumer<byte[], byte[]> consumer;
    final TreeSet<Integer> held = new TreeSet<>();
    boolean uncommitted;

    public static void main(String[] arguments) throws Exception {
        Thread listener = new Thread(Member::waitForEnd);
        listener.setDaemon(true);
        listener.start();
        new Member(arguments).run(arguments[2]);
    }

    static void waitForEnd() {
        try {
            while (System.in.read() >= 0) { }
        } catch (IOException closed) {
            // as good as its end
        }
        stopping = true;
    }

    Member(String[] arguments) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", arguments[1]);
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        if (arguments[3].equals("consumer")) {
            config.put("group.protocol", "consumer");
        } else {
            config.put("group.protocol", "classic");
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + ASSIGNORS.get(arguments[3]));
            config.put("session.timeout.ms", arguments[4].equals("-") ? 6000 : 30_000);  // a static member has time to start again
            config.put("heartbeat.interval.ms", 500);
        }
        if (!arguments[4].equals("-")) {
            config.put("group.instance.id", arguments[4]);
        }
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    void run(String topic) {
        try (consumer) {
            consumer.subscribe(List.of(topic), this);
            while (!stopping) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                for (TopicPartition partition : records.partitions()) {
                    List<ConsumerRecord<byte[], byte[]>> read = records.records(partition);
                    System.out.println("read " + partition.partition() + " " + read.get(0).offset() + " " + read.get(read.size() - 1).offset());
                    uncommitted = true;
                }
                commit();
            }
        } catch (KafkaException problem) {
            System.out.println("fail " + problem.toString().replaceAll("\\s+", " "));
            return;
        }
        System.out.println("closed");
    }

    /** What fails while the group rebalances is tried again, at the latest before the partition goes. */
    void commit() {
        if (uncommitted) {
            try {
                consumer.commitSync();
                uncommitted = false;
            } catch (KafkaException problem) {
                System.out.println("note " + problem.toString().replaceAll("\\s+", " "));
            }
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> held.add(partition.partition()));
        tell();
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        onPartitionsLost(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        partitions.forEach(partition -> held.remove(partition.partition()));
        tell();
    }

    void tell() {
        System.out.println("hold " + System.nanoTime() + " " + held.stream().map(String::valueOf).collect(Collectors.joining(",")));
    }
}
