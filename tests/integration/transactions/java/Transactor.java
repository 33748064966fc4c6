// Transactional producers and readers, as told on stdin: one command a line, words separated by tabs; see clients.py.
//
//     new NAME TRANSACTIONAL_ID TIMEOUT_MS        begin NAME        send NAME TOPIC PARTITION VALUE
//     send-all NAME TOPIC PARTITIONS VALUE        (one record to each; a failure is told by commit)
//     offsets NAME GROUP TOPIC PARTITION OFFSET   commit NAME       abort NAME        close NAME
//     read ISOLATION TOPIC PARTITION              committed GROUP TOPIC PARTITION
//
// It answers each with one line: "ok" and what was asked for, or "error" and the name of the exception.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactor {
    final String bootstrap;
    final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

    Transactor(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        Transactor transactor = new Transactor(arguments[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(transactor.answer(line.split("\t", -1)));
        }
        Runtime.getRuntime().halt(0); // whatever transactions are open
    }

    String answer(String[] words) throws Exception {
        try {
            return "ok\t" + run(words);
        } catch (ExecutionException problem) {
            return "error\t" + problem.getCause().getClass().getSimpleName();
        } catch (KafkaException | IllegalStateException problem) {
            return "error\t" + problem.getClass().getSimpleName();
        }
    }

    String run(String[] words) throws Exception {
        KafkaProducer<String, String> producer = producers.get(words[1]);
        switch (words[0]) {
            case "new" -> producers.put(words[1], made(words[2], words[3]));
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[2], Integer.parseInt(words[3]), null, words[4])).get();
            case "send-all" -> {
                for (int partition = 0; partition < Integer.parseInt(words[3]); partition++) {
                    producer.send(new ProducerRecord<>(words[2], partition, null, words[4]));
                }
                producer.flush();
            }
            case "offsets" -> producer.sendOffsetsToTransaction(
                Map.of(partition(words, 3), new OffsetAndMetadata(Long.parseLong(words[5]))), new ConsumerGroupMetadata(words[2]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producers.remove(words[1]).close(Duration.ZERO);
            case "read" -> { return String.join("\t", read(words[1], partition(words, 2))); }
            case "committed" -> { return committed(words[1], partition(words, 2)); }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    static TopicPartition partition(String[] words, int at) {
        return new TopicPartition(words[at], Integer.parseInt(words[at + 1]));
    }

    KafkaProducer<String, String> made(String transactionalId, String timeoutMs) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", bootstrap, "transactional.id", transactionalId, "transaction.timeout.ms", Integer.parseInt(timeoutMs));
        KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    /** From the beginning to the end, as this kind of reader sees it. */
    List<String> read(String isolation, TopicPartition partition) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("nobody", isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    String committed(String group, TopicPartition partition) {
        try (KafkaConsumer<String, String> consumer = consumer(group, "read_committed")) {
            OffsetAndMetadata found = consumer.committed(java.util.Set.of(partition)).get(partition);
            return found == null ? "" : String.valueOf(found.offset());
        }
    }

    KafkaConsumer<String, String> consumer(String group, String isolation) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", group, "isolation.level", isolation, "enable.auto.commit", false);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }
}
