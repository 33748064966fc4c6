// The same commands as Client.java, spoken by kafka-clients 0.9: no headers, no timestamps, and so no `consume TOPIC time:MS`.
// Its consumer asks for a group's coordinator before it reads anything, assigned by hand or not.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class OldClient {
    static final long WAIT_MS = 30_000;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            try {
                obey(line.split("\t"));
                System.out.println("ok");
            } catch (Exception problem) {
                Throwable cause = problem.getCause() == null ? problem : problem.getCause();
                System.out.println("error\t" + cause.toString().replaceAll("\\s+", " "));
            }
            System.out.flush();
        }
    }

    static void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "produce" -> produce(words[1], words[2], Path.of(words[3]));
            case "consume" -> consume(words[1], words[2], Integer.parseInt(words[3]), Path.of(words[4]));
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    static void produce(String topic, String codec, Path file) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("compression.type", codec);
        config.put("max.request.size", 16 << 20);
        config.put("linger.ms", 20);
        config.put("acks", "all");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : Files.readAllLines(file)) {
                String[] fields = line.split(" ", -1);
                sent.add(producer.send(new ProducerRecord<>(topic, 0, bytes(fields[2]), bytes(fields[3]))));
            }
            producer.flush();
        }
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    static void consume(String topic, String start, int count, Path file) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", "old-client");
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "none");
        config.put("max.partition.fetch.bytes", 4 << 20);
        TopicPartition partition = new TopicPartition(topic, 0);
        int left = count;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            consumer.assign(List.of(partition));
            // Not seekToBeginning: this client would look for offsets that its group has committed first, group or not.
            consumer.seek(partition, start.equals("beginning") ? 0 : Long.parseLong(start.substring(7)));
            long deadline = System.currentTimeMillis() + WAIT_MS;
            while (left > 0 && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(500)) {
                    out.println(record.offset() + " -1 " + text(record.key()) + " " + text(record.value()) + " ");
                    left--;
                }
            }
        }
        if (left > 0) {
            throw new IllegalStateException(left + " of " + count + " records did not come");
        }
    }

    static byte[] bytes(String text) {
        return text.equals("-") ? null : Base64.getDecoder().decode(text.substring(1));
    }

    static String text(byte[] bytes) {
        return bytes == null ? "-" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
