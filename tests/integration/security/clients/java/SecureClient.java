// Java clients over SASL_SSL. Takes one command a line on stdin, words separated by tabs, and answers each with one line: "ok" and a
// value, or "error" and the class and text of the exception. Compiles with kafka-clients 2.8 and newer.
//
//     open NUMBER BOOTSTRAP AUTHORITY TOPIC MECHANISM USER PASSWORD TOKEN     a login, which connects at its first command;
//                                                                            for GSSAPI: PASSWORD is a file of tickets, TOKEN the service
//     send NUMBER                                                            sends a record, and waits until it is acknowledged
//     read NUMBER                                                            the value of the first record
//     close NUMBER

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class SecureClient {
    static final int WAIT_MS = 30_000;
    static final String MODULES = "org.apache.kafka.common.security.";

    final Map<String, Object> config = new HashMap<>();
    final TopicPartition partition;
    KafkaProducer<String, String> producer;
    KafkaConsumer<String, String> consumer;

    SecureClient(String[] words) {
        partition = new TopicPartition(words[4], 0);
        config.put("bootstrap.servers", words[2]);
        config.put("security.protocol", "SASL_SSL");
        config.put("ssl.truststore.type", "PEM");
        config.put("ssl.truststore.location", words[3]);
        config.put("sasl.mechanism", words[5]);
        config.put("max.block.ms", WAIT_MS);
        config.put("sasl.jaas.config", jaas(words[5], words[6], words[7], words[8]));
        if (words[5].equals("OAUTHBEARER")) {
            config.put("sasl.login.callback.handler.class", GivenToken.class);
        }
    }

    static String jaas(String mechanism, String user, String password, String token) {
        if (mechanism.equals("OAUTHBEARER")) {
            return MODULES + "oauthbearer.OAuthBearerLoginModule required token=\"" + token + "\";";
        }
        if (mechanism.equals("GSSAPI")) {
            return "com.sun.security.auth.module.Krb5LoginModule required doNotPrompt=true useTicketCache=true ticketCache=\"" + password
                + "\" serviceName=\"" + token + "\";";
        }
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        return MODULES + module + " required username=\"" + user + "\" password=\"" + password + "\";";
    }

    String send() throws Exception {
        if (producer == null) {
            producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        }
        producer.send(new ProducerRecord<>(partition.topic(), 0, null, "let in")).get();
        return "";
    }

    String read() {
        if (consumer == null) {
            consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        }
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        for (long deadline = System.currentTimeMillis() + WAIT_MS; System.currentTimeMillis() < deadline; ) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                return record.value();
            }
        }
        throw new IllegalStateException("no answer");
    }

    String close() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        if (consumer != null) {
            consumer.close();
        }
        return "";
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, SecureClient> logins = new HashMap<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            try {
                System.out.println("ok\t" + obey(logins, words));
            } catch (Exception problem) {
                Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
                System.out.println("error\t" + cause.toString().replaceAll("\\s+", " "));
            }
            System.out.flush();
        }
        System.exit(0);
    }

    static String obey(Map<String, SecureClient> logins, String[] words) throws Exception {
        return switch (words[0]) {
            case "open" -> {
                logins.put(words[1], new SecureClient(words));
                yield "";
            }
            case "send" -> logins.get(words[1]).send();
            case "read" -> logins.get(words[1]).read();
            case "close" -> logins.remove(words[1]).close();
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        };
    }

    /** Gives the token that the JAAS text has. */
    public static class GivenToken implements AuthenticateCallbackHandler {
        private String token;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback) {
                    ((OAuthBearerTokenCallback) callback).token(new Given(token));
                }
            }
        }

        @Override
        public void close() {}
    }

    static class Given implements OAuthBearerToken {
        private final String value;
        private final long start = System.currentTimeMillis();

        Given(String value) {
            this.value = value;
        }

        public String value() {
            return value;
        }

        public Set<String> scope() {
            return Set.of("kafka");
        }

        public long lifetimeMs() {
            return start + 3_600_000;
        }

        public String principalName() {
            return "alice";
        }

        public Long startTimeMs() {
            return start;
        }
    }
}
