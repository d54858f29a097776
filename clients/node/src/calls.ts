/** Calls of the service: who asks is said with each, each has an end, and what can be asked again is. */
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type CallOptions as GrpcCallOptions,
  Metadata,
  type MethodDefinition,
  type ServiceError,
} from "@grpc/grpc-js";
import { onAbort } from "./aborting.js";
import { pause } from "./durations.js";
import { Closed, InvalidArgument, type SealaneError } from "./errors.js";
import {
  type PullMessagesRequest,
  type PullMessagesResponse,
  type SendMessageRequest,
  type SendMessageResponse,
  SwarmMQService,
} from "./generated/swarmmq.js";
import { Backoff, SOON } from "./retrying.js";
import { errorOf } from "./statuses.js";
import { VERSION } from "./version.js";

export interface CallOptions {
  /** Seconds until the call is given up, all its tries together. By default the lane's, 30. */
  timeout?: number;
  /** Ends the call: it throws the signal's reason. Whether the work happened is not known then. */
  signal?: AbortSignal | undefined;
}

interface UnaryOptions extends CallOptions {
  /** Told before each try but the first. */
  onRepeat?: () => void;
}

interface Cancellable {
  cancel(): void;
}

/** A day: timers do not count much further. */
const TIMEOUT_SECONDS_MAX = 86_400;

const CHANNEL_OPTIONS = {
  "grpc.primary_user_agent": `sealane-node/${VERSION}`,
  // A lost node is looked for again soon, and a silent one is noticed.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 5_000,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  // How much is asked for is decided when pulling; the node decides how much of it is one answer.
  "grpc.max_receive_message_length": -1,
  "grpc.service_config_disable_resolution": 1,
};

export class Calls {
  private readonly client: Client;
  private readonly metadata = new Metadata();
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly open = new Set<Cancellable>();
  private closed = false;

  constructor(
    private readonly address: string,
    credentials: ChannelCredentials,
    authorization: string | undefined,
    readonly timeoutSeconds: number,
  ) {
    this.client = new Client(`dns:${address}`, credentials, CHANNEL_OPTIONS);
    if (authorization !== undefined) {
      this.metadata.set("authorization", authorization);
    }
  }

  /** The answer. What could not be reached is tried again until the time is over. */
  unary<Q, A>(method: MethodDefinition<Q, A>, request: Q, options: UnaryOptions = {}): Promise<A> {
    return this.track(this.tryUntilDone(method, request, options));
  }

  /** The answer of one try. */
  once<Q, A>(method: MethodDefinition<Q, A>, request: Q, seconds: number, signal?: AbortSignal): Promise<A> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      this.checkOpen();
      const options: Partial<GrpcCallOptions> = { deadline: Date.now() + seconds * 1000 };
      const { path, requestSerialize, responseDeserialize } = method;
      const call = this.client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        this.metadata,
        options,
        (failure, answer) => {
          this.open.delete(call);
          takeBack();
          if (failure === null) {
            resolve(answer as A);
          } else {
            reject(signal?.aborted ? signal.reason : this.errorOf(failure));
          }
        },
      );
      this.open.add(call);
      const takeBack = onAbort(signal, () => call.cancel());
    });
  }

  pullMessages(request: PullMessagesRequest): ClientReadableStream<PullMessagesResponse> {
    this.checkOpen();
    const { path, requestSerialize, responseDeserialize } = SwarmMQService.pullMessages;
    const call = this.client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      this.metadata,
    );
    return this.opened(call);
  }

  sendMessages(): ClientDuplexStream<SendMessageRequest, SendMessageResponse> {
    this.checkOpen();
    const { path, requestSerialize, responseDeserialize } = SwarmMQService.sendMessages;
    return this.opened(this.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, this.metadata));
  }

  /** Let closing wait for this. */
  track<T>(work: Promise<T>): Promise<T> {
    this.underWay.add(work);
    const done = () => this.underWay.delete(work);
    work.then(done, done);
    return work;
  }

  errorOf(failure: ServiceError): SealaneError {
    return errorOf(failure, this.address);
  }

  checkOpen(): void {
    if (this.closed) {
      throw new Closed("the lane is closed");
    }
  }

  /** Wait for what is under way, at most so long; then cut off what is left. */
  async close(seconds: number): Promise<void> {
    const waiting = new AbortController();
    const enough = pause(seconds, waiting.signal).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.underWay), enough]);
    waiting.abort();
    this.closed = true;
    for (const call of this.open) {
      call.cancel();
    }
    this.client.close();
  }

  private opened<S extends Cancellable & NodeJS.EventEmitter>(stream: S): S {
    this.open.add(stream);
    stream.once("status", () => this.open.delete(stream));
    return stream;
  }

  private async tryUntilDone<Q, A>(method: MethodDefinition<Q, A>, request: Q, options: UnaryOptions): Promise<A> {
    const seconds = checkedTimeout(options.timeout ?? this.timeoutSeconds);
    const start = performance.now();
    const backoff = new Backoff(SOON, seconds, start);
    for (;;) {
      try {
        return await this.once(method, request, seconds - (performance.now() - start) / 1000, options.signal);
      } catch (error) {
        await backoff.after(error, options.signal);
        options.onRepeat?.();
      }
    }
  }
}

export function checkedTimeout(seconds: number): number {
  if (!(seconds > 0 && seconds <= TIMEOUT_SECONDS_MAX)) {
    throw new InvalidArgument(`timeout: ${seconds} is not more than 0 and at most ${TIMEOUT_SECONDS_MAX} seconds`);
  }
  return seconds;
}
