import { type Bench, compare, quantity } from "../bench.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const spinning = 400;
const timeoutMs = 1000;

/** Puts every process it may behind all others. What may not be done to the runner is not done. */
const putBehind = `
import os
for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    for attempt in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
                    lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
        try: attempt()
        except OSError: pass
`;

/** Whether what runs in a sandbox can keep its runner waiting: a read of a file after an attempt and beside 400 that spin. */
export const crowdedSandbox: Bench = {
  name: "crowded-sandbox",
  async run({ isQuick, openSandbox, progress, signal }) {
    await using alone = await openSandbox();
    await using attacked = await openSandbox();
    await using crowded = await openSandbox();
    const look = (sandbox: typeof alone) => () => timed(() => sandbox.files.stat("/etc/passwd"));
    for (const sandbox of [alone, attacked, crowded]) await repeat(50, look(sandbox));
    await attacked.exec(["python3", "-c", putBehind]);
    const rounds = isQuick ? 4 : 20;
    const sides = { ours: { name: "after the attempt", batch: 5, sample: look(attacked) } };
    const rival = { name: "in another sandbox", batch: 5, sample: look(alone) };
    const turns = { rounds, signal, onRound: (round: number) => progress(`round ${round} of ${rounds}`) };
    const afterAttempt = await takeTurns({ ...sides, rival }, turns);
    await crowded.exec(["bash", "-c", `for i in $(seq ${spinning}); do (while :; do :; done) & done`]);
    const besideMany = await takeTurns(
      { ours: { name: "beside 400 that spin", batch: 5, sample: look(crowded) }, rival },
      turns,
    );
    const lateMs: number[] = [];
    for (let call = 0; call < (isQuick ? 3 : 10); call++) {
      signal.throwIfAborted();
      progress(`a timeout, call ${call + 1}`);
      const { durationMs } = await crowded.exec(["sleep", "30"], { timeoutMs });
      lateMs.push(durationMs - timeoutMs);
    }
    return [
      quantity(
        { name: `sleep 30, beside ${spinning} that spin`, values: lateMs },
        {
          title: "a timeout is so late",
          unit: "ms",
          judged: "max",
          target: { kind: "at-most", value: 1000 },
        },
      ),
      compare(afterAttempt.ours, afterAttempt.rival, {
        title: "`stat` after a command put the runner behind",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 1.5 },
      }),
      compare(besideMany.ours, besideMany.rival, {
        title: `\`stat\` beside ${spinning} processes that spin`,
        unit: "ms",
        direction: "ours / rival",
      }),
    ];
  },
};
