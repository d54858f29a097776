/** A real node in a process of its own, on free loopback ports, with its data in a directory that outlives it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { until } from "./waiting.js";

const START_SECONDS = 60;
const PYTHON = process.env.SEALANE_PYTHON ?? resolve("../../.venv/bin/python");

const run = promisify(execFile);

export class NodeProcess {
  readonly data: string;
  private readonly readyFile: string;
  private readonly logFile: string;
  private process: ChildProcess | undefined;
  private doors: Record<string, string> = {};

  private constructor(
    private readonly directory: string,
    private readonly insecure: boolean,
  ) {
    this.data = join(directory, "data");
    this.readyFile = join(directory, "ready.json");
    this.logFile = join(directory, "node.log");
  }

  static async start({ insecure = true } = {}): Promise<NodeProcess> {
    const node = new NodeProcess(await mkdtemp(join(tmpdir(), "sealane-node-")), insecure);
    await node.start();
    return node;
  }

  /** For `connect`. */
  get address(): string {
    return `localhost:${portOf(this.doors.grpc)}`;
  }

  /** A file or folder beside the data. */
  path(name: string): string {
    return join(this.directory, name);
  }

  /** From the second start on, its doors are where they were before. */
  async start(): Promise<void> {
    await rm(this.readyFile, { force: true });
    const port = (door: string) => `--set=doors.${door}.port=${portOf(this.doors[door])}`;
    const doors = ["--set=doors.grpc.enabled=on", ...["native", "http", "grpc"].map(port)];
    const where = ["--data", this.data, "--ready-file", this.readyFile];
    const log = openSync(this.logFile, "a");
    const child = spawn(PYTHON, ["-m", "sealane", "up", ...(this.insecure ? ["--insecure"] : []), ...where, ...doors], {
      stdio: ["ignore", log, log],
      // What a killed one leaves behind is removed with the rest.
      env: { ...environment(), TMPDIR: this.directory },
    });
    closeSync(log);
    this.process = child;
    process.once("exit", () => child.kill("SIGKILL"));
    this.doors = await until(START_SECONDS, async () => {
      if (child.exitCode !== null) {
        throw new Error(`the node ended; its log: ${await readFile(this.logFile, "utf8")}`);
      }
      const text = await readFile(this.readyFile, "utf8").catch(() => undefined);
      return text === undefined ? undefined : JSON.parse(text).doors;
    });
  }

  /** End it as a crash would. */
  kill(): Promise<void> {
    return this.end("SIGKILL");
  }

  /** End it as an operator would. */
  stop(): Promise<void> {
    return this.end("SIGTERM");
  }

  /** End it, and leave nothing behind. */
  async remove(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true });
  }

  /** What a command of the command line says, as the node's administrator. */
  sealane(...command: string[]): Promise<string> {
    return sealane(...command, "--data", this.data);
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.process;
    this.process = undefined;
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill(signal);
      await ended;
    }
  }
}

/** What a command of the command line says. */
export async function sealane(...command: string[]): Promise<string> {
  const { stdout } = await run(PYTHON, ["-m", "sealane", ...command], { env: environment() });
  return stdout;
}

/** 0, which is any free one, of a door that has no place yet. */
function portOf(address: string | undefined): string {
  return address?.split(":").at(-1) ?? "0";
}

/** A test's node has the settings that the test gives it, and no others. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SEALANE_")));
}
