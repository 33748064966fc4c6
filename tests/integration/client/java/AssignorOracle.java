// What Apache Kafka's assignors give for the cases on stdin, one a line, fields separated by tabs:
//
//     ASSIGNOR  TOPICS  MEMBERS        topic=rack+rack/rack/…,…      member|instance|rack|generation|topics|owned|user data in hex;…
//
// It prints, a line for each, the members in the order in which Kafka walked through them, each with what it got: member=topic:n+topic:n;…
// With the single argument `bytes` it prints the subscription and the assignment of each member as bytes in hex instead.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class AssignorOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split("\t", -1);
            Cluster cluster = cluster(fields[1]);
            Map<String, Subscription> members = new HashMap<>();
            for (String member : fields[2].split(";")) {
                String[] parts = member.split("\\|", -1);
                members.put(parts[0], subscription(parts));
            }
            Map<String, String> bytes = new HashMap<>(); // before an assignor reads the user data and leaves it read
            members.forEach((member, subscription) -> bytes.put(member, hex(ConsumerProtocol.serializeSubscription(subscription))));
            Map<String, Assignment> result;
            try {
                result = assignor(fields[0]).assign(cluster, new GroupSubscription(members)).groupAssignment();
            } catch (RuntimeException problem) {
                System.out.println("failed=" + problem.toString().replaceAll("[;=]", " "));
                continue;
            }
            if (arguments.length > 0) {
                System.out.println(members.keySet().stream().map(member -> member + "=" + bytes.get(member)
                    + "," + hex(ConsumerProtocol.serializeAssignment(result.get(member)))).collect(Collectors.joining(";")));
            } else {
                System.out.println(members.keySet().stream().map(member -> member + "=" + result.get(member).partitions().stream()
                    .map(one -> one.topic() + ":" + one.partition()).collect(Collectors.joining("+"))).collect(Collectors.joining(";")));
            }
        }
    }

    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    static Cluster cluster(String topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : topics.isEmpty() ? new String[0] : topics.split(",")) {
            String[] parts = topic.split("=", -1);
            int number = 0;
            for (String racks : parts[1].split("/", -1)) {
                List<Node> replicas = new ArrayList<>();
                for (String rack : racks.split("\\+", -1)) {
                    replicas.add(nodes.computeIfAbsent(rack, name -> new Node(nodes.size(), "h", 1, name.isEmpty() ? null : name)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(parts[0], number++, all[0], all, all));
            }
        }
        return new Cluster("c", nodes.values(), infos, Set.of(), Set.of());
    }

    static Subscription subscription(String[] parts) {
        List<TopicPartition> owned = new ArrayList<>();
        for (String one : parts[5].isEmpty() ? new String[0] : parts[5].split(",")) {
            String[] pair = one.split(":");
            owned.add(new TopicPartition(pair[0], Integer.parseInt(pair[1])));
        }
        ByteBuffer userData = parts[6].isEmpty() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[6]));
        List<String> topics = parts[4].isEmpty() ? List.of() : List.of(parts[4].split(","));
        Optional<String> rack = parts[2].isEmpty() ? Optional.empty() : Optional.of(parts[2]);
        Subscription subscription = new Subscription(topics, userData, owned, Integer.parseInt(parts[3]), rack);
        subscription.setGroupInstanceId(parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]));
        return subscription;
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
