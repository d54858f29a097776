import { Calls, checkedTimeout } from "./calls.js";
import { authorizationOf, type CredentialOptions, channelCredentials } from "./credentials.js";
import { InvalidArgument } from "./errors.js";
import { Lane } from "./lane.js";

export interface ConnectOptions extends CredentialOptions {
  /** Seconds until a call is given up, all its tries together. By default 30. */
  timeout?: number;
}

const PORT_DEFAULT = 9001;
const TIMEOUT_SECONDS = 30;

/**
 * A lane to the gRPC door of a node, `host:port`, by TLS. It connects with the first call, and again whenever the
 * connection is lost.
 */
export function connect(address = "localhost", options: ConnectOptions = {}): Lane {
  const timeout = checkedTimeout(options.timeout ?? TIMEOUT_SECONDS);
  const target = targetOf(address);
  return new Lane(new Calls(target, channelCredentials(options), authorizationOf(options), timeout));
}

function targetOf(address: string): string {
  const parts = /^(\[[0-9a-fA-F:.]+\]|[^\s/:[\]]+)(?::(\d{1,5}))?$/.exec(address);
  if (parts === null) {
    throw new InvalidArgument(`address: ${JSON.stringify(address)} is not host:port, such as broker.example:9001`);
  }
  return `${parts[1]}:${parts[2] ?? PORT_DEFAULT}`;
}
