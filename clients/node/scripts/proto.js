// Makes src/generated from the node's own description of its service; with --check only tells whether it is fresh.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const protos = join(root, "../../src/sealane/doors/grpc");
const python = process.env.SEALANE_PYTHON ?? join(root, "../../.venv/bin/python");
const generated = join(root, "src/generated");

const OPTIONS = [
  "annotateFilesWithVersion=false",
  "enumsAsLiterals=true",
  "env=node",
  "esModuleInterop=true",
  "importSuffix=.js",
  "outputClientImpl=false",
  "outputJsonMethods=false",
  "outputPartialMethods=false",
  "outputServices=grpc-js",
  "unrecognizedEnum=false",
];

function generate(into) {
  const plugin = join(root, "node_modules/.bin/protoc-gen-ts_proto");
  const arguments_ = [`--plugin=protoc-gen-ts_proto=${plugin}`, `--ts_proto_opt=${OPTIONS.join(",")}`];
  const command = ["-m", "grpc_tools.protoc", "-I", protos, ...arguments_, `--ts_proto_out=${into}`, "swarmmq.proto"];
  execFileSync(python, command, { stdio: "inherit" });
}

function filesOf(folder) {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  const files = names.map(String).filter((name) => name.endsWith(".ts"));
  return new Map(files.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

const made = mkdtempSync(join(tmpdir(), "sealane-proto-"));
try {
  generate(made);
  if (process.argv.includes("--check")) {
    if (JSON.stringify([...filesOf(made)]) !== JSON.stringify([...filesOf(generated)])) {
      console.error("src/generated is not what swarmmq.proto says; run: npm run proto");
      process.exitCode = 1;
    }
  } else {
    rmSync(generated, { recursive: true, force: true });
    cpSync(made, generated, { recursive: true });
  }
} finally {
  rmSync(made, { recursive: true });
}
