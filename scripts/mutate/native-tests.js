import { posix } from "node:path";

/** The tests are run with these, so a fault counts as noticed that only they notice. */
const SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined";
const COMPILER = `clang -std=gnu11 -I../../common -I../../runner-files -w -O0 -fno-omit-frame-pointer ${SANITIZE}`;
const SOUND = "/tmp/native";
const FAULTY = "/tmp/native-faulty";

/**
 * The runner's native tests in a container with its sources below /src. All of them are compiled once, and for a fault only the source that it is in,
 * and the tests that include that source. `inside` and, with more time, `insidePatiently` run a script and say how it ended, `read` gives
 * what it prints.
 */
export async function openNativeTests({ inside, insidePatiently, read }) {
  const tests = await listTests(read);
  const all = new Set(tests.flatMap(({ main, sources, beside }) => [main, ...sources, ...beside]));
  await insidePatiently(`mkdir -p ${SOUND} ${FAULTY}; ${compile([...all], SOUND)}`);
  const sound = [];
  for (const test of tests) {
    const outcome = await run(test, []);
    if (outcome === "survived") sound.push(test);
    else process.stderr.write(`  ${test.name} ends without a fault as ${outcome} and is left out\n`);
  }

  /** `faulty` are the sources and tests that were compiled with the fault. */
  async function run({ name, main, sources, beside }, faulty) {
    for (const [program, parts] of [
      [name, [main, ...sources]],
      [`${name}-files`, beside],
    ]) {
      if (parts.length === 0) continue;
      const objects = parts.map((one) => objectOf(one, faulty.includes(one) ? FAULTY : SOUND));
      const linked = await inside(`${COMPILER} -o ${FAULTY}/${program} ${objects.join(" ")}`);
      if (linked !== "passed") return linked === "failed" ? "invalid" : linked;
    }
    const ended = await inside(`${FAULTY}/${name} >/tmp/out 2>&1 && ! grep -q ^failed /tmp/out`);
    return { passed: "survived", failed: "killed" }[ended] ?? ended;
  }

  /** "untested" where no test contains the source, a path below /src. It has to be there with its fault. */
  async function outcomeOf(source) {
    const linking = sound.filter(({ sources, beside }) => [...sources, ...beside].includes(source));
    const including = sound.filter(({ included }) => included.has(source));
    if (linking.length + including.length === 0) return "untested";
    const faulty = including.map(({ main }) => main);
    if (linking.length > 0) faulty.push(source);
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

/**
 * What each test is made of: its own source, those it is linked with, the paths of all files that it includes, and the sources of the program of
 * file operations that the runner in it starts.
 */
async function listTests(read) {
  const commands = await read("make -n -C /src/runner/test OUT=/tests unit");
  const found = [];
  const programs = new Map();
  for (const command of commands.split("\n")) {
    const [, name] = / -o \/tests\/(\S+)/.exec(command) ?? [];
    if (name === undefined) continue;
    const words = command
      .split(/\s+/)
      .filter((word) => word.endsWith(".c"))
      .map(fromSources);
    const main = words.find((word) => word.startsWith("runner/test/"));
    if (main === undefined) {
      programs.set(name, words);
      continue;
    }
    const included = await read(
      `cd /src/runner/test; clang -I../../common -I../../runner-files -MM /src/${main}`,
    );
    found.push({
      name,
      main,
      sources: words.filter((word) => word !== main),
      included: new Set(included.split(/[\s\\]+/).map(fromSources)),
    });
  }
  return found.map((test) => ({ ...test, beside: programs.get(`${test.name}-files`) ?? [] }));
}

/** The path below /src of one that the Makefile or the compiler names. */
function fromSources(path) {
  return posix.relative("/src", posix.resolve("/src/runner/test", path));
}

/** A script that compiles these, two at a time. */
function compile(sources, directory) {
  const list = sources.map((source) => `/src/${source} ${objectOf(source, directory)}`).join("\\n");
  return `cd /src/runner/test; printf '${list}\\n' | xargs -P 2 -L 1 sh -c '${COMPILER} -c "$0" -o "$1"'`;
}

function objectOf(source, directory) {
  return `${directory}/${source.replaceAll("/", "-").replace(/c$/, "o")}`;
}
