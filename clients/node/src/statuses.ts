/** From the status that a call ends with to an error of this package. */
import { type ServiceError, status } from "@grpc/grpc-js";
import {
  DeadlineExceeded,
  Forbidden,
  InvalidArgument,
  LeaseLost,
  NotFound,
  RateLimited,
  SealaneError,
  Unauthenticated,
  Unavailable,
  UntrustedNode,
} from "./errors.js";

/** In the trailing metadata: the name of the node's error, and for how long to wait before asking again. */
const ERROR_NAME = "sealane-error";
const RETRY_AFTER = "retry-after";

type Kind = new (message: string, options: { code?: string; cause?: unknown }) => SealaneError;

const BY_NAME = new Map<string, Kind>([
  ["LeaseLost", LeaseLost],
  ["TooManyConnections", Unavailable],
]);

const BY_STATUS: Partial<Record<status, Kind>> = {
  [status.UNAUTHENTICATED]: Unauthenticated,
  [status.PERMISSION_DENIED]: Forbidden,
  [status.NOT_FOUND]: NotFound,
  [status.INVALID_ARGUMENT]: InvalidArgument,
  [status.OUT_OF_RANGE]: InvalidArgument,
  [status.DEADLINE_EXCEEDED]: DeadlineExceeded,
  [status.UNAVAILABLE]: Unavailable,
  // A caller's own cancelling never gets here: the call was ended by a node that stops, or by something on the way.
  [status.CANCELLED]: Unavailable,
};

/** What grpc-js says of a connection that did not come to be: in the middle of it, why. */
const NO_CONNECTION =
  /^No connection established\. Last error: (?:Error: )?(.*?)\s*(?:\(\d{4}-[^)]*Z\))?\. Resolution note/s;
/** In what OpenSSL says: the node has refused a client's certificate, the client has refused the node's, and what came
 * was no TLS at all. */
const CERTIFICATE_REFUSED = /SSL.* alert (.*?):/s;
const UNTRUSTED = /certificate|altnames|unable to (get|verify)/i;
const PLAIN_TEXT = /wrong version number|packet length too long/;
/** What Node.js makes of an answer that is no HTTP/2: a node says so to plain text where it speaks TLS. */
const TLS_WANTED = /Protocol error/;
/** A stream that was cut off without a status: what stood behind it is gone. */
const CUT_OFF = /RST_STREAM|Connection dropped|ECONNRESET|GOAWAY/;

/** `address` is where the node was looked for. */
export function errorOf(failure: ServiceError, address: string): SealaneError {
  const name = textOf(failure, ERROR_NAME);
  if (name === undefined) {
    return unnamed(failure, address);
  }
  const options = { code: name, cause: failure };
  if (name === "RateLimited") {
    const retryAfterSeconds = Number(textOf(failure, RETRY_AFTER)) || 1;
    return new RateLimited(failure.details, { ...options, retryAfterSeconds });
  }
  const kind = BY_NAME.get(name) ?? BY_STATUS[failure.code] ?? SealaneError;
  return new kind(failure.details, options);
}

/** What the node did not say itself: gRPC did, here or there, or something on the way. */
function unnamed(failure: ServiceError, address: string): SealaneError {
  const { code, details } = failure;
  if (code === status.UNAVAILABLE || CUT_OFF.test(details)) {
    return unreached(details, address, { cause: failure });
  }
  const kind = BY_STATUS[code];
  return kind === undefined
    ? new SealaneError(details, { code: status[code], cause: failure })
    : new kind(details, { cause: failure });
}

/** Another try may help, unless it is about who trusts whom. */
function unreached(details: string, address: string, options: { cause: unknown }): SealaneError {
  const reason = NO_CONNECTION.exec(details)?.[1] ?? details;
  const alert = CERTIFICATE_REFUSED.exec(reason)?.[1];
  if (alert !== undefined) {
    const hint = "show one that its authority has issued, and that is still valid";
    return new Unauthenticated(`the node at ${address} refuses the certificate (${alert}); ${hint}`, options);
  }
  if (PLAIN_TEXT.test(reason)) {
    const hint = "if it is meant to, for trying things out, connect with `insecure: true`";
    return new UntrustedNode(`the node at ${address} speaks plain text; ${hint}`, options);
  }
  if (UNTRUSTED.test(reason)) {
    const hint = "give the certificate of its authority as `ca` or in SEALANE_CA, and the name that its own is for";
    return new UntrustedNode(`the node at ${address} is not trusted: ${reason}; ${hint}`, options);
  }
  if (TLS_WANTED.test(reason)) {
    return new InvalidArgument(`insecure: the node at ${address} speaks TLS; leave it out`, options);
  }
  return new Unavailable(`the node at ${address} cannot be reached: ${reason}`, options);
}

function textOf(failure: ServiceError, key: string): string | undefined {
  const value = failure.metadata?.get(key)[0];
  return value === undefined ? undefined : value.toString();
}
