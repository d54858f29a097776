/** How a lane shows who it is, and how it knows the node. */
import { readFileSync } from "node:fs";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { InvalidArgument } from "./errors.js";

/** A file's path, or its PEM text. */
export type Pem = string | Buffer;

export interface CredentialOptions {
  /** An API key, `slk_…`. By default that of SEALANE_API_KEY. */
  apiKey?: string;
  /** A token, instead of an API key. By default that of SEALANE_TOKEN. */
  token?: string;
  /** The certificate of the authority that the node's is from. By default that of SEALANE_CA, else the system's. */
  ca?: Pem;
  /** The client's own certificate, with `key`, its private key. */
  certificate?: Pem;
  key?: Pem;
  /** Plain text, for a node that runs with `--insecure`. Nothing secret is shown to it. */
  insecure?: boolean;
}

const PEM_BEGIN = "-----BEGIN";

export function channelCredentials(options: CredentialOptions): ChannelCredentials {
  if (options.insecure) {
    const secret = (["apiKey", "token", "certificate", "key"] as const).find((name) => options[name] !== undefined);
    if (secret !== undefined) {
      throw new InvalidArgument(`${secret}: would cross the network in plain text; leave out \`insecure\`, or it`);
    }
    return credentials.createInsecure();
  }
  const { certificate, key } = options;
  if ((certificate === undefined) !== (key === undefined)) {
    const [given, missing] = certificate === undefined ? ["key", "certificate"] : ["certificate", "key"];
    throw new InvalidArgument(`${missing}: is missing; ${given} needs it`);
  }
  const ca = options.ca ?? (process.env.SEALANE_CA || undefined);
  return credentials.createSsl(
    ca === undefined ? null : pem(ca, "ca"),
    key === undefined ? null : pem(key, "key"),
    certificate === undefined ? null : pem(certificate, "certificate"),
  );
}

/** What every call shows. The environment's is never shown to a node without TLS. */
export function authorizationOf(options: CredentialOptions): string | undefined {
  if (options.insecure) {
    return undefined;
  }
  if (options.apiKey !== undefined && options.token !== undefined) {
    throw new InvalidArgument("token: a lane shows either an API key or a token; leave one out");
  }
  let shown = options.apiKey ?? options.token;
  // A certificate says who it is already.
  if (shown === undefined && options.certificate === undefined) {
    shown = process.env.SEALANE_API_KEY || process.env.SEALANE_TOKEN || undefined;
  }
  return shown === undefined ? undefined : `Bearer ${shown.trim()}`;
}

function pem(source: Pem, what: string): Buffer {
  const text = typeof source === "string" ? source : source.toString("latin1");
  if (text.includes(PEM_BEGIN)) {
    return Buffer.from(text, "latin1");
  }
  if (typeof source !== "string") {
    throw new InvalidArgument(`${what}: is not PEM`);
  }
  try {
    return readFileSync(source);
  } catch (error) {
    throw new InvalidArgument(`${what}: ${source} cannot be read`, { cause: error });
  }
}
