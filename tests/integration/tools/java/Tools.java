// Runs Apache Kafka's own command line tools in one JVM, as told on stdin: one command a line, words separated by tabs.
//
//     MAIN_CLASS INPUT ARGUMENT…       INPUT is what the tool reads on its stdin, in base64, with "=" in front
//
// It answers with one line: the exit code, and in base64 all that the tool printed. A tool that takes too long gets code 124.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    static final long TIMEOUT_MS = 50_000;
    static final List<Runnable> hooks = new CopyOnWriteArrayList<>();
    static volatile int code;
    static volatile boolean ended;

    /** Stands for the end of the process. A tool may catch it and go on, so that from here on nothing it prints or returns counts. */
    static class Ended extends RuntimeException {
        Ended(int code) {
            if (!ended) {
                ended = true;
                Tools.code = code;
                printTo(new PrintStream(OutputStream.nullOutputStream()));
            }
        }
    }

    public static void main(String[] none) throws Exception {
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        Exit.setExitProcedure((code, message) -> { throw new Ended(code); });
        Exit.setHaltProcedure((code, message) -> { throw new Ended(code); });
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        BufferedReader commands = new BufferedReader(new InputStreamReader(stdin, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            byte[] printed = run(words[0], Base64.getDecoder().decode(words[1].substring(1)), Arrays.copyOfRange(words, 2, words.length));
            stdout.println(code + "\t" + Base64.getEncoder().encodeToString(printed));
            stdout.flush();
        }
        Runtime.getRuntime().halt(0); // whatever threads a tool may have left behind
    }

    static byte[] run(String mainClass, byte[] input, String[] arguments) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);
        Method main = Class.forName(mainClass).getMethod("main", String[].class);
        System.setIn(new ByteArrayInputStream(input));
        printTo(out);
        code = 0;
        ended = false;
        hooks.clear();
        Thread tool = new Thread(() -> guarded(main, arguments, out));
        tool.setDaemon(true);
        tool.start();
        tool.join(TIMEOUT_MS);
        byte[] result = printed.toByteArray(); // what it says to being interrupted does not count
        if (tool.isAlive()) {
            code = 124;
            tool.interrupt();
        }
        return result;
    }

    /** A tool ends by returning or by Exit; either way its shutdown hooks run, as at the end of a process. */
    static void guarded(Method main, String[] arguments, PrintStream out) {
        try {
            main.invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!ended) {
                code = 1;
                thrown.getCause().printStackTrace(out);
            }
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
        printTo(out);
        hooks.forEach(Runnable::run);
    }

    /** Scala's println keeps the stream that it found first. */
    static void printTo(PrintStream out) {
        System.setOut(out);
        System.setErr(out);
        try {
            Class<?> console = Class.forName("scala.Console$");
            console.getMethod("setOutDirect", PrintStream.class).invoke(console.getField("MODULE$").get(null), out);
        } catch (ReflectiveOperationException noScala) {
            return;
        }
    }
}
