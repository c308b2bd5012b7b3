import type { CliContext } from "../../command/index.js";
import { egressChoice, flaggedSettings, openSandbox } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { createProgress } from "../../lib/terminal/progress.js";
import type { EgressSettings, HostMount, Sandbox, SandboxSettings } from "../../sandbox/index.js";
import { resolveSettings } from "../../sandbox/index.js";
import type { PreparedAgent } from "./agents/prepare-agent.js";
import type { WrapCall } from "./wrap-call.js";
import type { WrapFlags } from "./wrap-flags.js";

interface Wrapping {
  prepared: PreparedAgent;
  hostMounts: readonly HostMount[];
  /** The directory of the host that is the agent's home; undefined for a home that ends with the sandbox. */
  privateHome: string | undefined;
}

interface OpenWrapped {
  sandbox: Sandbox;
  /** The environment variables that get placeholders for the secrets of config.toml. Empty without a list of allowed hosts. */
  configured: ReadonlySet<string>;
  /** The secrets that are put into requests; null without a list of allowed hosts. */
  inspection: NonNullable<SandboxSettings["inspection"]> | null;
}

/**
 * Opens the agent's sandbox, with `[egress]` of the user's configuration where it has a list of allowed hosts. A key of the
 * agent comes before a secret of the same name. Errors: those of `Sandbox.create`; `config.invalid`.
 */
export async function openWrapped(
  { flags, directory }: WrapCall,
  context: CliContext,
  { prepared, hostMounts, privateHome }: Wrapping,
): Promise<OpenWrapped> {
  const network = networkFor(flags, prepared);
  const configured = new Set<string>();
  const { configuredEgress } = egressChoice(undefined, context);
  const unresolved = {
    ...flaggedSettings(
      { ...flags, network },
      { ...context, cwd: directory, environment: context.environment },
    ),
    async configuredEgress() {
      const settings = await configuredEgress();
      const shown = flags.env ?? {};
      for (const name of Object.keys(settings?.secrets ?? {}))
        if (!Object.hasOwn(shown, name)) configured.add(name);
      return settings;
    },
    ...(prepared.keys.length > 0 &&
      network !== "none" && { egress: { secrets: secretsOf(prepared), rules: [...prepared.rules] } }),
  };
  const progress = createProgress(context.stderr, { usesColour: !context.environment.forbidsColor });
  if (context.stderr.isTTY === true) progress.step("starting the sandbox");
  try {
    let inspection: SandboxSettings["inspection"];
    const sandbox = await openSandbox(async () => {
      const settings = { ...(await resolveSettings(unresolved)), hostMounts, privateHome };
      inspection = settings.inspection;
      return settings;
    }, context);
    return { sandbox, configured, inspection: inspection ?? null };
  } finally {
    progress.close();
  }
}

const ALLOWLIST = "allowlist:";

/**
 * The network that the flags ask for; a list of hosts includes the agent's. Without `--network` only the agent's hosts, unless a
 * policy file is given, which then decides. Error: `usage.invalid`.
 */
function networkFor(
  { network, policy }: WrapFlags,
  { hosts, keys }: Pick<PreparedAgent, "hosts" | "keys">,
): string | undefined {
  if (network === undefined && (policy !== undefined || hosts.length === 0)) return undefined;
  if (network === "full" && keys.length > 0)
    throw invalidUsage(
      `with the network full, ${keys[0]?.variable} could not be kept outside`,
      "use --network allowlist:@public to allow every public host",
    );
  if (network !== undefined && !network.startsWith(ALLOWLIST)) return network;
  const added = network?.slice(ALLOWLIST.length).split(",") ?? [];
  return `${ALLOWLIST}${[...new Set([...hosts, ...added.filter((host) => host !== "")])].join(",")}`;
}

function secretsOf({ keys }: PreparedAgent): NonNullable<EgressSettings["secrets"]> {
  return Object.fromEntries(
    keys.map(({ variable, hosts, value, headers, isPlainHttp = false }) => [
      variable,
      { hosts: [...hosts], value, plain_http: isPlainHttp, ...(headers && { headers: [...headers] }) },
    ]),
  );
}
