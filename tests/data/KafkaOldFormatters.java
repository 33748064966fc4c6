/* Reads kafka-old-formatters-2.8.2.json and writes it anew: for each record the text that Apache Kafka's formatter of that name prints.
   The keys and values, in hexadecimal, are partly those that a Kafka 2.8.2 wrote, partly made up in older versions of the same schemas.

   java -cp 'kafka-2.8.2/*' KafkaOldFormatters.java kafka-old-formatters-2.8.2.json */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;

public class KafkaOldFormatters {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        List<String> rows = new ArrayList<>();
        for (JsonNode row : JSON.readTree(new File(args[0]))) {
            String name = row.get("formatter").asText();
            MessageFormatter formatter = (MessageFormatter) Class.forName(name).getDeclaredConstructor().newInstance();
            formatter.configure(Map.of());
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            byte[] key = bytes(row.get("key")), value = bytes(row.get("value"));
            formatter.writeTo(new ConsumerRecord<>("t", 0, 7, key, value), new PrintStream(printed, true, "UTF-8"));
            rows.add(JSON.writeValueAsString(((ObjectNode) row).put("printed", printed.toString("UTF-8"))));
        }
        System.out.println("[\n" + String.join(",\n", rows) + "\n]");
    }

    static byte[] bytes(JsonNode hex) {
        if (hex.isNull()) return null;
        byte[] found = new byte[hex.asText().length() / 2];
        for (int i = 0; i < found.length; i++) found[i] = (byte) Integer.parseInt(hex.asText().substring(2 * i, 2 * i + 2), 16);
        return found;
    }
}
