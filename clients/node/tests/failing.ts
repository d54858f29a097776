/** What a promise failed with. */
import { SealaneError } from "@sealane/client";

export async function failureOf(promise: Promise<unknown>): Promise<SealaneError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof SealaneError) {
      return error;
    }
    throw error;
  }
  throw new Error("it did not fail");
}
