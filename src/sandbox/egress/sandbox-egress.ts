import type { EgressAttempt } from "../../egress/attempt.js";
import type { Resolve } from "../../egress/dial.js";
import { type Egress, openEgress } from "../../egress/open-egress.js";
import { BrigError } from "../../errors.js";
import type { NetworkScope } from "../../policy/network.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { SandboxNetwork } from "../network/sandbox-network.js";
import { DenialNotes } from "./denial-notes.js";

interface SandboxEgressOptions {
  hosts: readonly string[];
  onEgress?: ((attempt: EgressAttempt) => void) | undefined;
  resolve?: Resolve | undefined;
}

/** The allow-list of a sandbox at work. */
export class SandboxEgress {
  readonly #egress: Egress;
  readonly notes: DenialNotes;

  private constructor(egress: Egress, notes: DenialNotes) {
    this.#egress = egress;
    this.notes = notes;
  }

  /** Before the first command starts, so that nobody else can be at the proxy's address. Errors: `sandbox.*`. */
  static async open(
    link: RunnerLink,
    { hosts, onEgress, resolve }: SandboxEgressOptions,
  ): Promise<SandboxEgress> {
    const notes = new DenialNotes();
    const onAttempt = (attempt: EgressAttempt) => {
      notes.add(attempt);
      deliver(onEgress, attempt);
    };
    const egress = await openEgress(new SandboxNetwork(link), { hosts, onAttempt, resolve });
    return new SandboxEgress(egress, notes);
  }

  /** Error: `policy.not-enforced` for the network full, which this container does not have. */
  set(network: NetworkScope): void {
    if (network.kind === "full")
      throw new BrigError("a sandbox with an allow-list cannot get the full network while it runs", {
        code: "policy.not-enforced",
        hint: "allow @public, or create another sandbox",
      });
    this.#egress.setHosts(network.kind === "none" ? [] : network.hosts);
  }

  async close(): Promise<void> {
    await this.#egress.close();
  }
}

/** No call is waiting that could report an error of the listener, so it becomes a process warning. */
function deliver(onEgress: SandboxEgressOptions["onEgress"], attempt: EgressAttempt): void {
  try {
    onEgress?.(attempt);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
