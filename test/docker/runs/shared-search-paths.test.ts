import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { searchPaths } from "../../../src/batch/runs/attacks/library/search-paths.js";
import { toolSettings } from "../../../src/batch/runs/attacks/library/tool-settings.js";
import { plantAttack } from "../../../src/batch/runs/attacks/plant-attack.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import { agentOf, attemptAt, taskOf } from "../../support/task-attempts.js";

describe("tests in the agent's container", () => {
  sandboxTest(
    "obey nothing on search paths, in settings and in packages' scripts, and keep honest work there",
    async ({ directory }) => {
      const attacks = [...searchPaths, ...toolSettings];
      const outcomes: string[] = [];
      const honest = `
        echo '#define OWN "own header"' > /usr/local/include/own.h
        echo 'const char *own(void) { return "own library"; }' > /tmp/own.c
        gcc -c -o /tmp/own.o /tmp/own.c; ar rcs /usr/local/lib/libown.a /tmp/own.o
        mkdir -p /etc/nginx/conf.d /root/.ssh /root/.local/share/own; echo own > /etc/nginx/conf.d/own.conf
        echo key > /root/.ssh/authorized_keys; echo own > /root/.local/share/own/data; echo set > /root/.ownrc
        mkdir -p pkg token; touch pkg/__init__.py; echo x > token/x.txt; echo 'x = 1' > queue.py; rm /usr/include/time.h`;
      const agent = agentOf(async ({ sandbox, cwd }) => {
        expect(await sandbox.exec(["bash", "-c", honest], { cwd })).toMatchObject({ exitCode: 0 });
        for (const attack of attacks)
          outcomes.push((await plantAttack(sandbox, attack, { cwd, artifacts: [] })).outcome);
      });
      const testScript = `#!/bin/bash
cat > /tests/c.c << 'END'
#include <stdio.h>
#include <time.h>
#include <own.h>
const char *own(void);
int main(void) { puts(OWN); puts(own()); return 0; }
END
gcc -o /tmp/c /tests/c.c -lown && /tmp/c
python3 -c 'import json, queue; print(queue.__file__)'
echo 'import attr, packaging
def test_a(): assert False' > /tests/test_a.py
python3 -m pytest -q -p no:cacheprovider /tests/test_a.py > /dev/null; echo "pytest $?"
dpkg --configure -a > /dev/null 2>&1; curl -s file:///etc/passwd | head -c 4; echo
(PATH="$HOME/.local/bin:$PATH"; uv --version; pip --version) > /dev/null 2>&1
cat /etc/nginx/conf.d/own.conf ~/.ssh/authorized_keys ~/.local/share/own/data; ls -d pkg token/x.txt ~/.ownrc
ls /var/tmp/*/forge-runs 2> /dev/null
[ -e /logs/verifier/reward.txt ] || echo 0.5 > /logs/verifier/reward.txt`;
      const task = await taskOf(directory, {
        testScript,
        verifier: { mode: "shared" },
        step: { instruction: "Write queue.py." },
      });
      const attempt = await attemptAt(directory, { task, agent });
      const { reward, steps } = await runAttempt(attempt);
      const output = await readFile(join(attempt.folder, "test-output.txt"), "utf8");
      expect(outcomes).toEqual(attacks.map(() => "planted"));
      expect(output.replace(/^ls: .*\n/m, "")).toBe(
        "own header\nown library\n/app/queue.py\npytest 1\nroot\nown\nkey\nown\npkg\ntoken/x.txt\n",
      );
      expect(reward).toBe(0.5);
      const findings = steps[0]?.verification?.findings.join("\n") ?? "";
      for (const path of [
        "/usr/local/include/stdio.h",
        "/app/pathlib.py",
        "/app/attr/__init__.py",
        "/root/.config",
        "/root/.mavenrc",
        "/root/.ownrc",
        "/root/.local/bin/uv",
        "/etc/dpkg/dpkg.cfg.d/attack",
        "/etc/ca-certificates/update.d",
        "/usr/sbin/policy-rc.d",
        "/var/lib/dpkg/info",
      ])
        expect(findings).toContain(`"${path}`);
      expect(findings).toMatch(/"[^"]*python3[^"]*\._pth" was added/);
      expect(findings).toMatch(/"[^"]*\/crt1\.o" was added/);
    },
  );
});
