import type { LintStep, Remark } from "./finding.js";

/** Tests that ask a program on their own machine, or look for it among those that run. */
const asksProgram =
  /\bhttps?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])|(?:localhost|127\.0\.0\.1|\[::1\])["']?\s*(?::|,)\s*["']?\d{2,5}\b|\b(?:nc|ncat|telnet)\s+(?:-\w+\s+)*(?:localhost|127\.0\.0\.1)\b|\b(?:curl|wget|ssh|psql|mysql|redis-cli|mongosh?)\b[^\n]*(?:@|\s)(?:localhost|127\.0\.0\.1)\b|\b(?:pgrep|pidof)\s+[-\w]|\bsystemctl\s+(?:is-active|status)\b|\bservice\s+\S+\s+status\b|\b(?:ss|netstat)\s+-\w*l|\blsof\s+-i/;

/** Commands that start a program that goes on running: a shell's `&`, managers of services, and usual options of daemons. */
const startsInShell =
  /[^&>|\\]&\s*(?:#.*)?$|\b(?:nohup|setsid|daemonize|supervisord|start-stop-daemon)\b|\bsystemctl\s+(?:(?:re)?start|enable\s+--now)\b|\bservice\s+\S+\s+(?:re)?start\b|\/etc\/init\.d\/\S+\s+(?:re)?start\b|\btmux\s+new\S*\s[^\n]*-d\b|\bscreen\s+-\w*dm|\bdocker\s+(?:compose\s+)?(?:run|up)\b[^\n]*\s-d\b|\bpg_ctl(?:cluster)?\b[^\n]*\bstart\b|\bpm2\s+start\b|\s--?(?:daemon(?:ize|ized)?|fork)\b|^\s*(?:sudo\s+)?(?:\/\S*\/)?(?:nginx|sshd|redis-server|postfix\s+start|apache(?:2)?ctl\s+(?:-k\s+)?(?:re)?start)\s*(?:$|[;&|])/m;

/** Code that starts such a program in the languages that tests are written in, and libraries that serve in the process of the tests. */
const startsInCode =
  /\b(?:Popen|create_subprocess_(?:exec|shell)|spawn|execFile|fork)\s*\(|\bmultiprocessing\b|\bThread\s*\(|\b(?:TestClient|live_server|xprocess|testcontainers|httptest|serve_forever|HTTPServer|TCPServer|createServer)\b|\.listen\s*\(|\buvicorn\.run\b|\bapp\.run\s*\(/;

/**
 * Tests that need a program which only the agent can have started: it is ended before they run. That is known where the task's solution
 * starts one, or where there is no solution.
 */
export function neededPrograms({ step, tests, solution }: LintStep): Remark[] {
  const asked = asksProgram.exec(withoutComments(tests))?.[0];
  if (asked === undefined || step.verifier.keepsServices === true) return [];
  if (startsInShell.test(withoutComments(tests)) || startsInCode.test(tests)) return [];
  // A solution that is not seen to start one may do so in a way that nobody sees here, or the tests may.
  if (step.solution !== null && !startsInShell.test(withoutComments(solution))) return [];
  const kept =
    step.verifier.mode === "shared"
      ? ", or set keep_services = true for the verifier if they may share the container"
      : "";
  return [
    {
      message: `the tests ask a running program (${asked.trim()}) and start none, and what the agent started is ended before them: let them start it${kept}`,
    },
  ];
}

function withoutComments(script: string): string {
  return script.replace(/^\s*#.*$/gm, "");
}
