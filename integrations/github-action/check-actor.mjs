// Ends with an error unless whoever started the job may write to the repository, or is allowed by name. A job that a stranger can start
// spends the key of the repository's owner, and obeys what the stranger writes.
const {
  GITHUB_ACTOR: actor = "",
  GITHUB_REPOSITORY: repository = "",
  GITHUB_API_URL: api = "https://api.github.com",
  GITHUB_TOKEN: token = "",
  ALLOW_USERS = "",
  ALLOW_BOTS = "",
  ALLOW_BOT_USERS = "",
} = process.env;

const names = (list) =>
  list
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
const withoutSuffix = (name) => name.replace(/\[bot\]$/, "");

if (!(await isAllowed())) {
  console.error(
    `brig: ${JSON.stringify(actor)} may not write to ${repository}; the inputs allow-users and allow-bot-users allow others by name`,
  );
  process.exit(1);
}

async function isAllowed() {
  const name = actor.toLowerCase();
  if (name === "") return false;
  if (name.endsWith("[bot]")) {
    if (ALLOW_BOTS === "true" && name === "github-actions[bot]") return true;
    return names(ALLOW_BOT_USERS).map(withoutSuffix).includes(withoutSuffix(name));
  }
  const users = names(ALLOW_USERS);
  return users.includes("*") || users.includes(name) || (await mayWrite());
}

async function mayWrite() {
  const url = `${api}/repos/${repository}/collaborators/${encodeURIComponent(actor)}/permission`;
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, accept: "application/vnd.github+json" },
    signal: AbortSignal.timeout(30_000),
  }).catch((error) => error);
  if (!(response instanceof Response) || !response.ok) {
    console.error(
      `brig: GitHub does not say what ${JSON.stringify(actor)} may do: ${response.status ?? response}`,
    );
    return false;
  }
  const { permission } = await response.json();
  return permission === "admin" || permission === "write";
}
