// Runs several nodes of Apache Kafka in one JVM, one for each file of properties; says "started" when all of them have started.

import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

public class TwoBrokers {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = Utils.loadProps(file);
            new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM).startup();
        }
        System.out.println("all nodes have started");
        Thread.sleep(Long.MAX_VALUE);
    }
}
