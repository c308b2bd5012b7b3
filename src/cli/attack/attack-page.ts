import { createHash } from "node:crypto";
import type { AttackedPolicy, Judgement } from "../../sandbox/index.js";
import { byGroup, headingOf, summaryOf, VERDICT_WORDS } from "./attack-text.js";

interface About {
  version: string;
  engine: string;
  kernel: string;
  hasControl: boolean;
  at: Date;
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 1.5rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #8884; }
td:first-child, code { font-family: ui-monospace, monospace; }
td:first-child { width: 3rem; }
.verdict { width: 11rem; white-space: nowrap; font-weight: 600; }
.held { color: #1a7f37; } .failed { color: #d1242f; } .allowed { color: #9a6700; } .unjudged { color: #8250df; } .untried { color: #6e7781; }
.note { display: block; opacity: .8; }
`;

/** A page that needs no other file and runs no code. */
export function attackPage(attacked: readonly AttackedPolicy[], about: About): string {
  const hash = createHash("sha256").update(STYLE).digest("base64");
  const control = about.hasControl
    ? "Each refusal counts only because the same attempt succeeded in a container without protection."
    : "No container without protection was started, so nothing shows that the attempts could have succeeded.";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>brig doctor --attack</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Attempts against a sandbox</h1>
<p>brig ${escaped(about.version)}, ${escaped(about.engine)}, kernel ${escaped(about.kernel)}, ${escaped(about.at.toISOString())}.
${escaped(control)} The ids are those of the assertions in brig's SECURITY.md.</p>
${attacked.map(section).join("\n")}
</body>
</html>
`;
}

function section(attacked: AttackedPolicy): string {
  const tables = byGroup(attacked.judgements).map(
    ({ title, judgements }) =>
      `<h3>${escaped(title)}</h3>\n<table>\n${judgements.map(row).join("\n")}\n</table>`,
  );
  return `<h2>${escaped(headingOf(attacked))}</h2>
<p><strong>${escaped(summaryOf(attacked.judgements))}</strong></p>
${tables.join("\n")}`;
}

function row({ id, title, verdict, outcome, control, reason, advice }: Judgement): string {
  const notes = [reason, advice, control === null ? null : `without protection: ${control}`]
    .filter((note) => note !== null)
    .map((note) => `<span class="note">${escaped(note)}</span>`);
  return `<tr><td>${escaped(id)}</td><td>${escaped(title)}${notes.join("")}</td><td><code>${escaped(outcome)}</code></td><td class="verdict ${verdict}">${escaped(VERDICT_WORDS[verdict])}</td></tr>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Control characters have no place in a page either. */
function escaped(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}]/gu, "\uFFFD")
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
