import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { findAttack } from "../../../src/batch/runs/attacks/attack-library.js";
import { loadedCode } from "../../../src/batch/runs/attacks/library/loaded-code.js";
import { plantAttack } from "../../../src/batch/runs/attacks/plant-attack.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import {
  agentOf,
  attemptAt,
  shellAgent,
  stepOf,
  type TaskParts,
  taskOf,
} from "../../support/task-attempts.js";

/** The agent runs the script in the container in which the tests run afterwards. */
async function tried(directory: string, { agent, ...parts }: TaskParts & { agent: string }) {
  const verifier = { ...parts.verifier, mode: "shared" as const };
  const task = await taskOf(directory, { ...parts, verifier });
  const attempt = await attemptAt(directory, { task, agent: shellAgent(agent) });
  const result = await runAttempt(attempt);
  const output = await readFile(join(attempt.folder, "test-output.txt"), "utf8").catch(() => "");
  return { result, output, verification: result.steps[0]?.verification };
}

const GRADER = `#!/bin/bash
echo "answer $(cat /app/answer.txt 2>/dev/null)"
[ "$(cat /app/answer.txt 2>/dev/null)" = 42 ] && r=1 || r=0
echo $r > /logs/verifier/reward.txt`;

/** A program that does what the agent wants, and then what the program of that name does. */
const wrapper = (path: string, real: string) =>
  `printf '#!/bin/dash\\necho trojan\\nexec %s "$@"\\n' ${real} > ${path} && chmod 755 ${path}`;

describe("tests in the agent's container", () => {
  sandboxTest("see what the agent built and installed, and the result says so", async ({ directory }) => {
    const agent = `
      echo 42 > answer.txt
      printf '#!/bin/sh\\necho installed\\n' > /usr/local/bin/new-tool && chmod 755 /usr/local/bin/new-tool
      echo setting > /etc/new-tool.conf; useradd -M -u 1234 new-user`;
    const testScript = `${GRADER}\nnew-tool; cat /etc/new-tool.conf; id -u new-user; pgrep -c sleep`;
    const { result, output, verification } = await tried(directory, { agent, testScript });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(output).toBe("answer 42\ninstalled\nsetting\n1234\n0\n");
    expect(verification).toMatchObject({ mode: "shared", verifier: "scored", findings: [] });
  });

  sandboxTest("find no rewards and no processes of the agent", async ({ directory }) => {
    const agent = `
      mkdir -p /tmp/rewards /logs/verifier; echo 1 > /tmp/rewards/reward.txt
      rm -rf /logs; ln -s /tmp/rewards /logs; mkdir -p /tmp/rewards/verifier; echo 1 > /tmp/rewards/verifier/reward.txt
      ln -s /tmp/rewards /tests
      (setsid bash -c 'while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; done' > /dev/null 2>&1 &)`;
    const { result, verification } = await tried(directory, { agent, testScript: "#!/bin/sh\nexit 0" });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(verification).toMatchObject({ verifier: "no-reward", exitCode: 0 });
  });

  sandboxTest("run the programs, libraries and modules of the image", async ({ directory }) => {
    const agent = `
      cp /bin/cat /usr/local/bin/.cat; ${wrapper("/tmp/cat", "/usr/local/bin/.cat")}; mv -f /tmp/cat /bin/cat
      ${wrapper("/usr/local/bin/grep", "/bin/grep")}; ${wrapper("/usr/local/bin/curl", "/usr/bin/curl")}
      rm /usr/bin/wc; chmod 777 /usr/local/bin
      mv /usr/local/sbin /usr/local/other; mkdir /tmp/sbin; ln -s /tmp/sbin /usr/local/sbin
      ${wrapper("/tmp/sbin/head", "/usr/bin/head")}
      site=$(python3 -c 'import site; print(site.getsitepackages()[0])'); mkdir -p $site
      for file in $site/sitecustomize.py $site/usercustomize.py; do echo 'print("trojan")' > $file; done
      echo 'import os; os.system("echo trojan")' > $site/x.pth
      echo 'print("trojan")' >> $(python3 -c 'import json; print(json.__file__)')
      for file in /etc/profile.d/x.sh /root/.bashrc /root/.profile; do echo 'echo trojan' >> $file; done
      echo 'int puts(const char *s) { return 0; } __attribute__((constructor)) void f(void) { __builtin_printf("trojan"); }' > /tmp/x.c
      gcc -shared -fPIC -o /usr/lib/x.so /tmp/x.c && echo /usr/lib/x.so > /etc/ld.so.preload
      git config --global core.fsmonitor 'echo trojan; false'; git init -q /app/repository
      git -C /app/repository config core.fsmonitor 'echo trojan; false'
      sed -i 's/^nobody:[^:]*:[0-9]*:[0-9]*:/nobody:x:0:0:/' /etc/passwd
      echo 41 > answer.txt`;
    const testScript = `${GRADER}
echo x | cat; echo x | grep x; echo x | head -n 1; echo x | wc -l; curl --version > /dev/null; python3 -c 'import json'
bash -lic true 2> /dev/null; git -C /app/repository status > /dev/null; id -u nobody; stat -c %a /usr/local/bin`;
    const { result, output, verification } = await tried(directory, { agent, testScript });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(output).toBe("answer 41\nx\nx\nx\n1\n65534\n755\n");
    const findings = verification?.findings.join("\n") ?? "";
    for (const path of ["/etc/ld.so.preload", "/usr/local/bin/grep", "/root/.gitconfig", "/etc/passwd"])
      expect(findings).toContain(`"${path}"`);
  });

  sandboxTest("keep hooks of the task, but none of the agent's", async ({ directory }) => {
    const files = join(directory, "files");
    await mkdir(join(files, "given"), { recursive: true });
    await writeFile(join(files, "given/conftest.py"), "given");
    await writeFile(join(files, ".npmrc"), "given");
    const agent = `echo 42 > answer.txt; echo mine > given/conftest.py; echo mine > .npmrc; mkdir own out
      echo mine > own/conftest.py; echo mine > out/conftest.py; echo mine > package.json`;
    const artifacts = [".", "out"].map((source) => ({ source, destination: null, exclude: [] }));
    const testScript = `${GRADER}\ncd /app; grep -r . given .npmrc own out package.json | sort`;
    const { output } = await tried(directory, {
      agent,
      testScript,
      environment: { files },
      step: { artifacts },
    });
    expect(output).toBe(
      "answer 42\n.npmrc:given\ngiven/conftest.py:given\nout/conftest.py:mine\npackage.json:mine\n",
    );
  });

  sandboxTest(
    "are not replaced by somebody for whom the agent has opened the system",
    async ({ directory }) => {
      const task = await taskOf(directory, {
        verifier: { mode: "shared" },
        testScript: `#!/bin/bash
cd /
echo 42 > /tests/expected.txt
setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs python3 /app/answer.py > /tmp/found
cmp -s /tmp/found /tests/expected.txt && r=1 || r=0
stat -c '%a %u %n' / /usr /etc /usr/lib /opt/open
[ -e /logs/verifier/reward.txt ] || echo $r > /logs/verifier/reward.txt`,
      });
      const agent = agentOf(async ({ sandbox, cwd }) => {
        const attack = findAttack("artifact-swaps-tests");
        const artifacts = [`${cwd}/answer.py`];
        expect(await plantAttack(sandbox, attack, { cwd, artifacts })).toMatchObject({ outcome: "planted" });
        const open = "chmod 777 /usr /etc; chown nobody /usr/lib; mkdir -m 777 /opt/open";
        expect(await sandbox.exec(["sh", "-c", open])).toMatchObject({ exitCode: 0 });
      });
      const attempt = await attemptAt(directory, { task, agent });
      const result = await runAttempt(attempt);
      expect(result).toMatchObject({ status: "scored", reward: 0 });
      expect(await readFile(join(attempt.folder, "test-output.txt"), "utf8")).toBe(
        "755 0 /\n755 0 /usr\n755 0 /etc\n755 0 /usr/lib\n777 0 /opt/open\n",
      );
      const findings = result.steps[0]?.verification?.findings ?? [];
      for (const path of ["/", "/usr", "/etc", "/usr/lib"])
        expect(findings).toContain(`"${path}" was opened for others, and is closed`);
    },
  );

  sandboxTest("do not run beside more hooks than anybody could look at", async ({ directory }) => {
    const agent = `echo 42 > answer.txt; python3 -c 'import os
for i in range(20100):
    os.makedirs(f"many/{i}")
    open(f"many/{i}/conftest.py", "w").close()'`;
    const { result, verification } = await tried(directory, { agent, testScript: GRADER });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(verification?.message).toMatch(/more than 20000 files that tests would obey$/);
  });

  sandboxTest("of a container that the agent destroyed give 0, not another try", async ({ directory }) => {
    const agent = "rm -rf --one-file-system / 2> /dev/null; true";
    const { result } = await tried(directory, { agent, testScript: GRADER });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
  });

  sandboxTest("of one step are hidden from the agent in the next", async ({ directory }) => {
    const verifier = { mode: "shared" as const };
    const steps = [
      await stepOf(directory, { verifier, step: { name: "one" }, testScript: GRADER }),
      await stepOf(directory, { verifier, step: { name: "two" }, testScript: GRADER }),
    ];
    const task = await taskOf(directory, { steps });
    const agent = agentOf(async ({ sandbox, cwd, step: { name } }) => {
      const script = name === "one" ? "echo 42" : "ls -d /tests /logs/verifier/* 2> /dev/null; echo 42";
      await sandbox.exec(["bash", "-c", `(${script}) > answer.txt`], { cwd });
    });
    const result = await runAttempt(await attemptAt(directory, { task, agent }));
    expect(result.steps.map(({ rewards }) => rewards?.reward)).toEqual([1, 1]);
  });

  sandboxTest("may be a script beside the tests whose output is parsed", async ({ directory }) => {
    const script = join(directory, "run-tests.sh");
    await writeFile(script, 'ls "$TEST_DIR"; echo "PASSED test_x.py::test_x"\n');
    const tests = join(directory, "own-tests");
    await mkdir(tests);
    await writeFile(join(tests, "test_x.py"), "");
    const check = { kind: "parsed-output", directory: tests, script, parser: "pytest" } as const;
    const env = { TEST_DIR: "/tests" };
    const { output } = await tried(directory, { agent: "true", verifier: { check, env } });
    expect(output).toBe("run-tests.sh\ntest_x.py\nPASSED test_x.py::test_x\n");
  });

  sandboxTest(
    "give no grade if they print more than is read, which may hide one that failed",
    async ({ directory }) => {
      const script = join(directory, "run-tests.sh");
      const much = "head -c 12000000 /dev/zero | tr '\\0' x; echo";
      const begin = 'echo "= short test summary info ="; echo "PASSED test_x.py::test_x"';
      await writeFile(
        script,
        `${begin}; ${much}; echo "FAILED test_x.py::test_y"; ${much}; echo "PASSED test_x.py::test_z"\n`,
      );
      const check = { kind: "parsed-output", directory: null, script, parser: "pytest" } as const;
      const { result } = await tried(directory, { agent: "true", verifier: { check } });
      expect(result.reward).not.toBe(1);
      expect(result.steps[0]?.verification).toMatchObject({
        verifier: "no-reward",
        message:
          "the tests printed more than the 16 MiB that are read, so not all of their results are known",
      });
    },
  );

  sandboxTest(
    "load no code of the agent by the settings of libraries and the programs behind programs",
    async ({ directory }) => {
      const planted: string[] = [];
      const agent = agentOf(async (work) => {
        const { sandbox, cwd } = work;
        await sandbox.exec(["bash", "-c", "git init -q . && git init -q s && git init -q s/sub"], { cwd });
        for (const attack of loadedCode) {
          const { outcome } = await plantAttack(sandbox, attack, { cwd, artifacts: [cwd] });
          planted.push(outcome);
        }
        // A repository in a repository, whose settings are in the outer one.
        const moved = `cd s/sub && git config core.fsmonitor "echo trojan; false" && mkdir ../.git/modules &&
        mv .git ../.git/modules/sub && echo "gitdir: ../.git/modules/sub" > .git
        sed -i 's#^root:.*#root:x:0:0:root:/tmp:/bin/false#' /etc/passwd`;
        await sandbox.exec(["bash", "-c", moved], { cwd });
      });
      const testScript = `#!/bin/bash
su nobody -s /bin/sh -c true; id nobody > /dev/null; python3 -c 'import ssl'; openssl version > /dev/null; perl -Mstrict -e 0
echo 'int main(void) { return 0; }' | gcc -fsyntax-only -x c -; git status > /dev/null 2>&1; git -C s/sub status > /dev/null
echo 'def test_a(): assert False' > /tests/test_a.py; python3 -m pytest -q -p no:cacheprovider /tests/test_a.py > /dev/null
echo "pytest $?"; su -c 'echo "su $HOME"'; ls /var/tmp/*/forge-runs 2> /dev/null
[ -e /logs/verifier/reward.txt ] || echo 0.5 > /logs/verifier/reward.txt`;
      const task = await taskOf(directory, { testScript, verifier: { mode: "shared" } });
      const attempt = await attemptAt(directory, { task, agent });
      const { reward, steps } = await runAttempt(attempt);
      expect(planted).toEqual(loadedCode.map(() => "planted"));
      expect(await readFile(join(attempt.folder, "test-output.txt"), "utf8")).toBe("pytest 1\nsu /root\n");
      expect(reward).toBe(0.5);
      expect(steps[0]?.verification?.findings.join("\n")).toContain("whose name is no text");
    },
  );

  sandboxTest("of a tree that no engine can read give 0, not another try", async ({ directory }) => {
    const agent = `python3 -c '
import os
for i in range(600):
    os.mkdir("no space left on device")
    os.chdir("no space left on device")'`;
    const { result } = await tried(directory, { agent, testScript: "#!/bin/sh\ntrue" });
    expect(result).toMatchObject({ status: "scored", reward: 0, failure: null });
    expect(result.steps[0]?.verification).toMatchObject({ mode: "shared", verifier: "no-reward" });
  });

  describe("as another user than the agent", () => {
    const users = (agent: string | null, verifier: string | null) => ({
      step: { agent: { timeoutSec: 60, user: agent, network: null } },
      verifier: { user: verifier },
    });
    /** The agent's code, run by the tests, tries to write the reward. */
    const RUNS_AGENTS_CODE = `#!/bin/bash
id -u; stat -c %u:%a /logs/verifier
setpriv --reuid=nobody --regid=nogroup --clear-groups sh /app/answer.sh
[ "$(cat /app/answer.txt)" = 42 ] && r=1 || r=0
[ -e /logs/verifier/reward.txt ] || echo $r > /logs/verifier/reward.txt`;
    const FORGES = "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json";

    sandboxTest(
      "run as root where the agent does not, which then cannot write the reward",
      async ({ directory }) => {
        const agent = `id -u > answer.txt; cat > answer.sh << 'END'
${FORGES}
END
(setsid sh -c 'while sleep 0.05; do ${FORGES}; done' > /dev/null 2>&1 &)`;
        const given = { agent, testScript: RUNS_AGENTS_CODE, ...users("nobody", null) };
        const { result, output } = await tried(directory, given);
        expect(result).toMatchObject({ status: "scored", reward: 0 });
        expect(output).toMatch(/^0\n0:700\n/);
        expect(result.steps[0]?.verification).toMatchObject({ mode: "shared", verifier: "scored" });
        const solved = { ...given, agent: "echo 42 > answer.txt; echo true > answer.sh" };
        expect((await tried(directory, solved)).result).toMatchObject({ reward: 1 });
        // The same agent succeeds where it is the user of the tests.
        const same = await tried(directory, {
          ...given,
          ...users("nobody", "nobody"),
          testScript: "sh /app/answer.sh",
        });
        expect(same.result).toMatchObject({ reward: 1 });
      },
    );

    sandboxTest(
      "run without root's rights where the agent had them, on what root has put back",
      async ({ directory }) => {
        const agent = `echo 42 > answer.txt; ${wrapper("/usr/local/bin/grep", "/bin/grep")}
        mkdir -p /logs/verifier /tests; chmod 700 /logs /tests; ${FORGES}`;
        const testScript = `${GRADER}\nid -u; echo x | grep x; touch /usr/x 2> /dev/null || echo refused`;
        const { result, output } = await tried(directory, { agent, testScript, ...users(null, "nobody") });
        expect(result).toMatchObject({ status: "scored", reward: 1 });
        expect(output).toBe("answer 42\n65534\nx\nrefused\n");
      },
    );

    sandboxTest("give 0 when they end brig's own program, not another try", async ({ directory }) => {
      for (const signal of ["KILL", "STOP"]) {
        const given = users("nobody", "root");
        const verifier = { ...given.verifier, timeoutSec: 1 };
        const testScript = `#!/bin/bash\nkill -${signal} -1; sleep 60`;
        const { result } = await tried(directory, { agent: "true", testScript, ...given, verifier });
        expect(result).toMatchObject({ status: "scored", reward: 0 });
      }
    });

    sandboxTest("are hidden from the agent in the next step", async ({ directory }) => {
      const step = { agent: { timeoutSec: 60, user: "nobody", network: null } };
      const verifier = { mode: "shared" as const, user: "root" };
      const steps = [
        await stepOf(directory, { verifier, step: { ...step, name: "one" }, testScript: GRADER }),
        await stepOf(directory, { verifier, step: { ...step, name: "two" }, testScript: GRADER }),
      ];
      const agent = agentOf(async ({ sandbox, cwd }) => {
        await sandbox.exec(
          ["bash", "-c", "(ls -d /tests /logs/verifier/* 2> /dev/null; echo 42) > answer.txt"],
          { cwd },
        );
      });
      const result = await runAttempt(
        await attemptAt(directory, { task: await taskOf(directory, { steps }), agent }),
      );
      expect(result.steps.map(({ rewards }) => rewards?.reward)).toEqual([1, 1]);
    });

    sandboxTest("need a user that the image has", async ({ directory }) => {
      const unknown = tried(directory, { agent: "true", ...users(null, "somebody") });
      await expect(unknown).rejects.toMatchObject({ code: "usage.invalid" });
    });
  });
});
