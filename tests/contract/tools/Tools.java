// Runs Kafka's command-line tools, one after another or in parallel, in one process: one JSON
// request per line on standard input, one JSON response per line on standard output.
//
//   {"run": 7, "main": "class name", "arguments": [...], "stdin": "..."}    starts a tool
//   {"stop": 7}                                                             like Ctrl-C
//
// The response comes when the tool has ended: {"run": 7, "code": 0, "out": "...", "err": "..."}.
// Until then, each line that it prints is a message {"run": 7, "said": "..."}. System.exit ends only
// the tool. At the end of the input the process exits.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.Exit;

public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<Long, Run> RUNS = new ConcurrentHashMap<>();
    private static final PrintStream ANSWERS =
        new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** Threads that a tool starts belong to it as well. */
    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();

    /** Thrown by System.exit. An Error, since tools catch exceptions. */
    private static final class Exiting extends Error {
        private static final long serialVersionUID = 1L;

        Exiting() {
            super("the tool has asked to exit", null, false, false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setOut(new PrintStream(new Said(true), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Said(false), true, StandardCharsets.UTF_8));
        InputStream questions = System.in;
        System.setIn(new Asked());
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> CURRENT.get().hooks.add(hook));
        var in = new BufferedReader(new InputStreamReader(questions, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            if (asked.has("stop")) {
                Run run = RUNS.get(asked.get("stop").asLong());
                if (run != null) {
                    new Thread(run::stop, "stop").start();
                }
            } else {
                Run run = new Run(asked);
                RUNS.put(run.number, run);
                Thread thread = new Thread(run, asked.get("main").asText());
                thread.setDaemon(true);
                thread.start();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void exit(int code, String message) {
        Run run = CURRENT.get();
        // A tool may treat its own exit as a failure and exit again; that is ignored.
        if (run.code == null) {
            if (message != null) {
                System.err.println(message);
            }
            run.code = code;
            run.isMute = true;
        }
        throw new Exiting();
    }

    private static void tell(Map<String, Object> answer) {
        try {
            String line = JSON.writeValueAsString(answer);
            synchronized (ANSWERS) {
                ANSWERS.println(line);
            }
        } catch (Exception unspeakable) {
            Runtime.getRuntime().halt(1);
        }
    }

    private static final class Run implements Runnable {
        final long number;
        final InputStream in;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final ByteArrayOutputStream line = new ByteArrayOutputStream();
        final List<Runnable> hooks = new CopyOnWriteArrayList<>();
        volatile Integer code;
        volatile boolean isMute;
        private final String main;
        private final String[] arguments;

        Run(JsonNode asked) {
            number = asked.get("run").asLong();
            main = asked.get("main").asText();
            arguments = StreamSupport.stream(asked.get("arguments").spliterator(), false)
                .map(JsonNode::asText).toArray(String[]::new);
            in = new ByteArrayInputStream(
                asked.get("stdin").asText().getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public void run() {
            CURRENT.set(this);
            try {
                Class.forName(main).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
            } catch (InvocationTargetException ended) {
                if (!(ended.getCause() instanceof Exiting)) {
                    ended.getCause().printStackTrace();
                    code = 1;
                }
            } catch (ReflectiveOperationException absent) {
                absent.printStackTrace();
                code = 1;
            }
            // Java runs shutdown hooks at an exit; here the tool must.
            isMute = false;
            stop();
            RUNS.remove(number);
            tell(Map.of(
                "run", number,
                "code", code == null ? 0 : code,
                "out", out.toString(StandardCharsets.UTF_8),
                "err", err.toString(StandardCharsets.UTF_8)));
        }

        void stop() {
            CURRENT.set(this);
            for (Runnable hook : hooks) {
                if (hooks.remove(hook)) {
                    hook.run();
                }
            }
        }
    }

    /** Output goes to the tool whose thread prints it; other output is dropped. */
    private static final class Said extends OutputStream {
        private final boolean isOut;

        Said(boolean isOut) {
            this.isOut = isOut;
        }

        @Override
        public void write(int one) {
            Run run = CURRENT.get();
            if (run == null || run.isMute) {
                return;
            }
            synchronized (run) {
                (isOut ? run.out : run.err).write(one);
                if (isOut && one == '\n') {
                    String said = run.line.toString(StandardCharsets.UTF_8);
                    run.line.reset();
                    tell(Map.of("run", run.number, "said", said));
                } else if (isOut) {
                    run.line.write(one);
                }
            }
        }
    }

    private static final class Asked extends InputStream {
        @Override
        public int read() {
            try {
                return CURRENT.get().in.read();
            } catch (java.io.IOException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }
}
