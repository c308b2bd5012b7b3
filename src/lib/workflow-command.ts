/** GitHub shows no more annotations of each kind for a step. */
export const MOST_ANNOTATIONS = 10;

/** A workflow command of GitHub Actions: always one line, and one command, whatever the texts contain. */
export function workflowCommand(
  level: "error" | "warning",
  properties: Readonly<Record<string, string | number>>,
  text: string,
): string {
  const shown = Object.entries(properties).map(
    ([name, value]) => `${name}=${escapedProperty(String(value))}`,
  );
  return `::${level} ${shown.join(",")}::${escaped(text)}`;
}

/** A text for the log of a job, in which the runner finds no command: it looks at the start of lines, behind white space. */
export function withoutCommands(text: string): string {
  return text.replace(/^(\s*)::/gm, "$1: :").replaceAll("##[", "## [");
}

/** The runner reads a command at the start of a line, and one of the older form `##[error]` anywhere in it. */
function escaped(text: string): string {
  return text
    .replaceAll("%", "%25")
    .replaceAll("\r", "%0D")
    .replaceAll("\n", "%0A")
    .replaceAll("##[", "## [");
}

function escapedProperty(text: string): string {
  return escaped(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
