import type { Attack } from "../attack.js";

const source = "laude-institute/harbor #2551: the verifier's directory is not emptied before the tests";
const remedy =
  'set `environment_mode = "separate"`: the tests then begin with an empty /logs/verifier that the agent has never seen';

/** Rewards that are there before the tests run. */
export const plantedRewards: readonly Attack[] = [
  planted("reward-file", {
    tries: "Writes reward.txt and reward.json before the tests do.",
    script: `
echo 1 > /logs/verifier/reward.txt
echo '{"reward": 1}' > /logs/verifier/reward.json`,
  }),
  planted("reward-future", {
    tries: "Plants rewards whose time is later than any that the tests can have.",
    script: `
echo 1 > /logs/verifier/reward.txt
echo '{"reward": 1}' > /logs/verifier/reward.json
touch -d '2037-01-01' /logs/verifier/reward.txt /logs/verifier/reward.json 2> /dev/null ||
  touch -t 203701010000 /logs/verifier/reward.txt /logs/verifier/reward.json`,
  }),
  planted("reward-link", {
    tries: "Plants symbolic links to rewards that are elsewhere.",
    script: `
mkdir -p "$STATE/rewards"
echo 1 > "$STATE/rewards/number"
echo '{"reward": 1}' > "$STATE/rewards/object"
rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
ln -s "$STATE/rewards/number" /logs/verifier/reward.txt
ln -s "$STATE/rewards/object" /logs/verifier/reward.json`,
  }),
  planted("reward-hard-link", {
    tries: "Plants hard links, so that the rewards stay writable under another name.",
    script: `
mkdir -p "$STATE/rewards"
echo 1 > "$STATE/rewards/number"
echo '{"reward": 1}' > "$STATE/rewards/object"
rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
ln "$STATE/rewards/number" /logs/verifier/reward.txt 2> /dev/null || not_possible "/logs is another file system"
ln "$STATE/rewards/object" /logs/verifier/reward.json`,
  }),
  planted("reward-directory-link", {
    tries: "Makes /logs/verifier a symbolic link to a directory of the agent.",
    script: `
mkdir -p "$STATE/rewards"
echo '{"reward": 1}' > "$STATE/rewards/reward.json"
rm -rf /logs/verifier 2> /dev/null
ln -s "$STATE/rewards" /logs/verifier 2> /dev/null || not_possible "/logs/verifier cannot be replaced"`,
  }),
  planted("reward-unwritable", {
    tries: "Makes reward.txt a directory, so that the tests cannot write it, and plants reward.json.",
    script: `
rm -rf /logs/verifier/reward.txt
mkdir -p /logs/verifier/reward.txt/in-use
echo '{"reward": 1}' > /logs/verifier/reward.json
chmod 444 /logs/verifier/reward.json`,
  }),
  planted("reward-fifo", {
    tries: "Makes reward.json a FIFO, out of which a process gives everybody who reads it a reward.",
    script: `
need mkfifo
rm -rf /logs/verifier/reward.json
mkfifo /logs/verifier/reward.json
(while [ -p /logs/verifier/reward.json ]; do echo '{"reward": 1}' > /logs/verifier/reward.json; sleep 0.05; done) < /dev/null > /dev/null 2>&1 &`,
  }),
  ...(
    [
      ["boolean", "is a boolean", '{"reward": true}'],
      ["nested", "is a list", '{"reward": [[1]]}'],
      ["text", "is text", '{"reward": "1"}'],
      ["infinite", "is larger than any number", '{"reward": 1e999}'],
      ["duplicate", "is given twice", '{"reward": 0, "reward": 1}'],
    ] as const
  ).map(([name, what, json]) =>
    planted(`reward-${name}`, {
      tries: `Plants a reward.json whose reward ${what}.`,
      script: `echo '${json}' > /logs/verifier/reward.json`,
    }),
  ),
  planted("reward-not-a-number", {
    tries: "Plants rewards that are no numbers, to end without a score.",
    script: `
echo nan > /logs/verifier/reward.txt
echo '{"reward": NaN}' > /logs/verifier/reward.json`,
  }),
  planted("reward-huge", {
    tries: "Plants a reward.json of 100 MB.",
    script: `{ head -c 100000000 /dev/zero | tr '\\0' ' '; echo '{"reward": 1}'; } > /logs/verifier/reward.json`,
  }),
];

function planted(name: string, { tries, script }: Pick<Attack, "tries" | "script">): Attack {
  return { name, tries, source, remedy, script: `rewards_directory\n${script}`, claims: ["/logs/verifier"] };
}
