import type { StopReason } from "@agentclientprotocol/sdk";
import type { TurnResult } from "../../../agent/index.js";

/** The protocol's name for how a turn ended. Throws the error of a turn that failed. */
export function stopReasonOf({ status, error }: TurnResult): StopReason {
  switch (status) {
    case "completed":
      return "end_turn";
    case "interrupted":
      return "cancelled";
    case "failed":
      throw error ?? new TypeError("a turn that failed has an error");
    default:
      return status satisfies never;
  }
}
