/** The client of Sealane for Node.js. */
export type { CallOptions } from "./calls.js";
export { type ConnectOptions, connect } from "./connect.js";
export type { ConsumeBatchesOptions, ConsumeOptions, SubscriptionOptions } from "./consuming.js";
export type { CredentialOptions, Pem } from "./credentials.js";
export {
  Closed,
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
export type { Health } from "./health.js";
export { newId } from "./ids.js";
export type { Lane } from "./lane.js";
export type { NackOptions } from "./lease.js";
export type { Message, MessageBatch } from "./message.js";
export type { Bytes, OutgoingMessage, PublishOptions } from "./outgoing.js";
export type { Producer, ProducerOptions } from "./producer.js";
export type { Receipt } from "./receipt.js";
export type { Retry } from "./retrying.js";
export { VERSION } from "./version.js";
