// A Java client that does what it is told on stdin, one command a line, words separated by tabs, and answers each with one line:
// "ok", or "error" and why. Compiles with kafka-clients 2.8 and newer. Records travel in files, in the format of records.py.
//
//     produce TOPIC CODEC FILE                    sends the records of FILE to partition 0, in order, and waits for all of them
//     consume TOPIC beginning COUNT FILE          reads COUNT records without a group into FILE; also offset:N and time:MS

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Client {
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
        config.put("max.block.ms", WAIT_MS);
        config.put("linger.ms", 20);
        config.put("acks", "all");
        config.put("enable.idempotence", true);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : Files.readAllLines(file)) {
                sent.add(producer.send(parse(topic, line)));
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
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "none");
        TopicPartition partition = new TopicPartition(topic, 0);
        int left = count;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            consumer.assign(List.of(partition));
            seek(consumer, partition, start);
            long deadline = System.currentTimeMillis() + WAIT_MS;
            while (left > 0 && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    out.println(show(record));
                    left--;
                }
            }
        }
        if (left > 0) {
            throw new IllegalStateException(left + " of " + count + " records did not come");
        }
    }

    static void seek(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, String start) {
        if (start.equals("beginning")) {
            consumer.seekToBeginning(List.of(partition));
        } else if (start.startsWith("offset:")) {
            consumer.seek(partition, Long.parseLong(start.substring(7)));
        } else {
            long time = Long.parseLong(start.substring(5));
            consumer.seek(partition, consumer.offsetsForTimes(Map.of(partition, time)).get(partition).offset());
        }
    }

    static ProducerRecord<byte[], byte[]> parse(String topic, String line) {
        String[] fields = line.split(" ", -1);
        List<Header> headers = new ArrayList<>();
        for (String header : fields[4].isEmpty() ? new String[0] : fields[4].split(",")) {
            String[] pair = header.split(":");
            headers.add(new RecordHeader(new String(bytes(pair[0]), StandardCharsets.UTF_8), bytes(pair[1])));
        }
        return new ProducerRecord<>(topic, 0, Long.parseLong(fields[1]), bytes(fields[2]), bytes(fields[3]), headers);
    }

    static String show(ConsumerRecord<byte[], byte[]> record) {
        StringJoiner headers = new StringJoiner(",");
        for (Header header : record.headers()) {
            headers.add(text(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + text(header.value()));
        }
        return record.offset() + " " + record.timestamp() + " " + text(record.key()) + " " + text(record.value()) + " " + headers;
    }

    static byte[] bytes(String text) {
        return text.equals("-") ? null : Base64.getDecoder().decode(text.substring(1));
    }

    static String text(byte[] bytes) {
        return bytes == null ? "-" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
