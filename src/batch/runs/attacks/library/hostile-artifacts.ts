import { attacksWith } from "../attack.js";

const source = "laude-institute/harbor #3103: logs and artifacts are taken from the agent's container";
const remedy =
  "read an artifact only if it is a regular file of a sane size (`[ -f F ] && [ ! -L F ]`), and never by following a link";

/** Things that a harness or a test should not copy, follow or read. */
export const hostileArtifacts = attacksWith({ source, remedy }, [
  onArtifacts("artifact-link", {
    tries: "Hands in links to the file of the same name among the tests.",
    each: 'ln -sfn "/tests/$(basename "$artifact")" "$artifact"',
  }),
  onArtifacts("artifact-fifo", {
    tries: "Hands in FIFOs, which whoever reads them waits for.",
    each: 'mkfifo "$artifact"',
  }),
  onArtifacts("artifact-sparse", {
    tries: "Hands in files of 10 GB that take no space.",
    each: 'truncate -s 10G "$artifact"',
  }),
  onArtifacts("artifact-many", {
    tries: "Hands in 150 000 files in place of one.",
    each: 'mkdir -p "$artifact" && (cd "$artifact" && seq 1 150000 | xargs touch)',
  }),
  onArtifacts("artifact-names", {
    tries: "Hands in names with line breaks, control sequences and steps upwards.",
    each: String.raw`mkdir -p "$artifact" && (cd "$artifact" && touch "$(printf 'line\nbreak')" "$(printf '\033]0;title\007\033[2J')" '..\..\reward.txt' "$(printf '%0250d' 0)" "$(printf '\377\376')" -- '-rf')`,
  }),
  {
    name: "artifact-escape",
    tries: "Publishes links to the verifier's directory and out of the artifacts.",
    claims: ["/logs/artifacts"],
    script: `
mkdir -p /logs/artifacts 2> /dev/null
[ -w /logs/artifacts ] || not_possible "/logs/artifacts cannot be written"
ln -sfn ../verifier /logs/artifacts/verifier
ln -sfn / /logs/artifacts/root
mkdir -p "$STATE/logs/verifier"
echo '{"reward": 1}' > "$STATE/logs/verifier/reward.json"
ln -sfn "$STATE/logs/verifier/reward.json" /logs/artifacts/reward.json`,
  },
]);

function onArtifacts(name: string, { tries, each }: { tries: string; each: string }) {
  return {
    name,
    tries,
    claims: ["artifacts"],
    script: String.raw`
rm -f "$STATE/planted"
printf '%s\n' "$ARTIFACTS" | while IFS= read -r artifact; do
  case $artifact in "" | / | "$PWD") continue ;; esac
  rm -rf "$artifact" && mkdir -p "$(dirname "$artifact")" || continue
  { ${each}; } && touch "$STATE/planted"
done
[ -e "$STATE/planted" ] || not_possible "the step declares no artifact that can be replaced"`,
  };
}
