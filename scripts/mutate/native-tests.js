import { basename } from "node:path";

/** The tests are run with these, so a fault counts as noticed that only they notice. */
const SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined";
const COMPILER = `clang -std=gnu11 -w -O0 -fno-omit-frame-pointer ${SANITIZE}`;
const SOUND = "/tmp/native";
const FAULTY = "/tmp/native-faulty";

/**
 * The runner's native tests in a container with its sources in /src. All of them are compiled once, and for a fault only the source that it is in,
 * and the tests that include that source. `inside` and, with more time, `insidePatiently` run a script and say how it ended, `read` gives
 * what it prints.
 */
export async function openNativeTests({ inside, insidePatiently, read }) {
  const tests = await listTests(read);
  const all = new Set(tests.flatMap(({ main, sources }) => [main, ...sources]));
  await insidePatiently(`mkdir -p ${SOUND} ${FAULTY}; ${compile([...all], SOUND)}`);
  const sound = [];
  for (const test of tests) {
    const outcome = await run(test, []);
    if (outcome === "survived") sound.push(test);
    else process.stderr.write(`  ${test.name} ends without a fault as ${outcome} and is left out\n`);
  }

  /** `faulty` are the sources and tests that were compiled with the fault. */
  async function run({ name, main, sources }, faulty) {
    const objects = [main, ...sources].map((one) => objectOf(one, faulty.includes(one) ? FAULTY : SOUND));
    const linked = await inside(`${COMPILER} -o ${FAULTY}/${name} ${objects.join(" ")}`);
    if (linked !== "passed") return linked === "failed" ? "invalid" : linked;
    const ended = await inside(`${FAULTY}/${name} >/tmp/out 2>&1 && ! grep -q ^failed /tmp/out`);
    return { passed: "survived", failed: "killed" }[ended] ?? ended;
  }

  /** "untested" where no test contains the source. It has to be in /src with its fault. */
  async function outcomeOf(source) {
    const linking = sound.filter(({ sources }) => sources.includes(`../${source}`));
    const including = sound.filter(({ included }) => included.has(source));
    if (linking.length + including.length === 0) return "untested";
    const faulty = including.map(({ main }) => main);
    if (linking.length > 0) faulty.push(`../${source}`);
    const compiled = await inside(compile(faulty, FAULTY));
    if (compiled !== "passed") return compiled === "failed" ? "invalid" : compiled;
    for (const test of new Set([...linking, ...including])) {
      const outcome = await run(test, faulty);
      if (outcome !== "survived") return outcome;
    }
    return "survived";
  }

  return { outcomeOf };
}

/** What each test is made of: its own source, those it is linked with, and the names of all files that it includes. */
async function listTests(read) {
  const commands = await read("make -n -C /src/test OUT=/tests unit");
  const found = [];
  for (const command of commands.split("\n")) {
    const [, name] = / -o \/tests\/(\S+)/.exec(command) ?? [];
    if (name === undefined) continue;
    const words = command.split(/\s+/).filter((word) => word.endsWith(".c"));
    const main = words.find((word) => !word.startsWith("../"));
    const included = await read(`cd /src/test; clang -MM ${main}`);
    found.push({
      name,
      main,
      sources: words.filter((word) => word !== main),
      included: new Set(included.split(/[\s\\]+/).map((word) => basename(word))),
    });
  }
  return found;
}

/** A script that compiles these, two at a time. */
function compile(sources, directory) {
  const list = sources.map((source) => `${source} ${objectOf(source, directory)}`).join("\\n");
  return `cd /src/test; printf '${list}\\n' | xargs -P 2 -L 1 sh -c '${COMPILER} -c "$0" -o "$1"'`;
}

function objectOf(source, directory) {
  return `${directory}/${source
    .replace(/^\.\.\//, "")
    .replaceAll("/", "-")
    .replace(/c$/, "o")}`;
}
