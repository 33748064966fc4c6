/* Loads what a broker of Apache Kafka, its tools and its clients load, so that the JVM can write these classes into an archive when it
   ends: java -XX:ArchiveClassesAtExit=kafka.jsa -cp 'kafka-4.2.0/*' KafkaClasses.java SERVER.PROPERTIES ADDRESS. It formats a data
   directory and runs a broker in it. See tests/class_archives.py. */

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Exit;

public class KafkaClasses {
    static final String TOPIC = "t";

    public static void main(String[] args) throws Exception {
        String properties = args[0], address = args[1];
        String[] format = {"format", "-c", properties, "-t", "AAAAAAAAAAAAAAAAAAAAAA", "--feature", "eligible.leader.replicas.version=0"};
        kafka.tools.StorageTool.execute(format, System.out);
        Thread broker = new Thread(() -> kafka.Kafka.main(new String[] {properties}), "broker");
        broker.setDaemon(true);
        broker.start();
        useClients(address);
        useTools(address);
        System.exit(0); // the broker stops in the JVM's shutdown, and its classes are written afterwards
    }

    static void useClients(String address) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", address);
        try (Admin admin = Admin.create(settings)) {
            while (admin.describeCluster().nodes().get().isEmpty()) Thread.sleep(100);
            create(admin);
            admin.describeTopics(List.of(TOPIC)).allTopicNames().get();
        }
        Map<String, Object> transactional = Map.of("bootstrap.servers", address, "transactional.id", "x");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(transactional, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, "key", "value")).get();
            producer.commitTransaction();
        }
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> reading = Map.of("bootstrap.servers", address, ConsumerConfig.GROUP_ID_CONFIG, "g-" + protocol,
                ConsumerConfig.GROUP_PROTOCOL_CONFIG, protocol, ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(TOPIC));
                while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) { }
                consumer.commitSync();
            }
        }
    }

    static void create(Admin admin) throws Exception {
        while (true) {
            try {
                admin.createTopics(List.of(new NewTopic(TOPIC, Optional.of(1), Optional.of((short) 1)))).all().get();
                return;
            } catch (ExecutionException tooEarly) {
                Thread.sleep(100);
            }
        }
    }

    static void useTools(String address) throws Exception {
        Exit.setExitProcedure((code, message) -> { throw new RuntimeException(message); }); // a tool that fails ends only itself
        run(() -> org.apache.kafka.tools.TopicCommand.main(new String[] {"--bootstrap-server", address, "--describe"}));
        run(() -> org.apache.kafka.tools.consumer.group.ConsumerGroupCommand.main(
            new String[] {"--bootstrap-server", address, "--describe", "--all-groups"}));
        run(() -> kafka.admin.ConfigCommand.main(
            new String[] {"--bootstrap-server", address, "--describe", "--entity-type", "topics", "--all"}));
        run(() -> org.apache.kafka.tools.consumer.ConsoleConsumer.main(
            new String[] {"--bootstrap-server", address, "--topic", TOPIC, "--from-beginning", "--max-messages", "1"}));
    }

    interface Tool {
        void run() throws Exception;
    }

    static void run(Tool tool) {
        try {
            tool.run();
        } catch (Exception ignored) {
            // its classes are loaded
        }
    }
}
