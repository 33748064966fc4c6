// Reads partitions of a topic from their beginning until its input ends; see throttle.py.
//
//     Reading BOOTSTRAP TOPIC PARTITIONS
//
// A line for each record: "PARTITION OFFSET VALUE". An exception of the consumer ends it with a stack trace.

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Reading {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        List<TopicPartition> partitions = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            partitions.add(new TopicPartition(arguments[1], number));
        }
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0], "auto.offset.reset", "none");
        Thread input = new Thread(Reading::awaitEnd);
        input.start();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (input.isAlive()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    out.println(record.partition() + " " + record.offset() + " " + record.value());
                }
                out.flush();
            }
        }
    }

    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException gone) {
            // the same as its end
        }
    }
}
