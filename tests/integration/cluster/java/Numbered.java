// Writes value-0, value-1, ... with acks of all and idempotence into partitions of a topic, until its input ends; see records.py.
//
//     Numbered BOOTSTRAP TOPIC PARTITIONS PAUSE_MS RETRY_MS
//
// A line for each record: "PARTITION OFFSET VALUE" once it is acknowledged, or "failed PARTITION" and why. At the end it waits for all of them.

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Numbered {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long pause = Long.parseLong(arguments[3]);
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        Map<String, Object> config = Map.of(
            "bootstrap.servers", arguments[0],
            "acks", "all",
            "enable.idempotence", true,
            "delivery.timeout.ms", 120_000,
            "max.block.ms", 120_000,
            "linger.ms", 5,
            "reconnect.backoff.max.ms", arguments[4],
            "retry.backoff.max.ms", arguments[4]);
        Thread input = new Thread(Numbered::awaitEnd);
        input.start();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (long number = 0; input.isAlive(); number++) {
                for (int partition = 0; partition < partitions; partition++) {
                    send(producer, new ProducerRecord<>(topic, partition, null, "value-" + number), out);
                }
                Thread.sleep(pause);
                synchronized (out) {
                    out.flush();
                }
            }
            producer.flush();
        }
        out.flush();
    }

    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException gone) {
            // the same as its end
        }
    }

    static void send(KafkaProducer<String, String> producer, ProducerRecord<String, String> record, PrintStream out) {
        producer.send(record, (metadata, problem) -> {
            synchronized (out) {
                if (problem == null) {
                    out.println(metadata.partition() + " " + metadata.offset() + " " + record.value());
                } else {
                    out.println("failed " + record.partition() + " " + record.value() + ": " + problem);
                }
            }
        });
    }
}
