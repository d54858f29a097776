import { secondsOf } from "./durations.js";
import { type HealthResponse, HealthResponse_Status } from "./generated/swarmmq.js";

/** How a node is. */
export interface Health {
  readonly isServing: boolean;
  /** Why it does not serve. */
  readonly problems: readonly string[];
  readonly nodeId: string;
  readonly version: string;
  readonly uptimeSeconds: number;
}

export function healthOf(response: HealthResponse): Health {
  return {
    isServing: response.status === HealthResponse_Status.SERVING,
    problems: response.problems,
    nodeId: response.nodeId,
    version: response.version,
    uptimeSeconds: response.uptime === undefined ? 0 : secondsOf(response.uptime),
  };
}
