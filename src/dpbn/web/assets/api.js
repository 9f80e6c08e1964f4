// Questions to the server. A newer question of the same kind replaces an older one that is still open.

const BUSY_RETRIES = 3;
const SILENT = "The server does not answer: is dpbn serve still running?";
const open = new Map();

export class Problem extends Error {
  constructor(document, status) {
    super(document.detail || document.title || `The server answered ${status}`);
    this.kind = String(document.type || "").replace("urn:dpbn:problem:", "");
    this.title = document.title || "";
    this.status = status;
  }
}

/** fetch, whose TypeError says nothing of use to people. */
async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    throw error instanceof TypeError ? new Error(SILENT) : error;
  }
}

export async function release() {
  const answer = await reach("/api/release");
  if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})), answer.status);
  return answer.json();
}

/** The answer, or null if a newer question of this kind was asked meanwhile. */
export async function ask(kind, question) {
  open.get(kind)?.abort();
  const controller = new AbortController();
  open.set(kind, controller);
  try {
    for (let attempt = 0; ; attempt += 1) {
      const answer = await reach(`/api/${kind}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(question),
        signal: controller.signal,
      });
      if (answer.ok) return await answer.json();
      if (answer.status === 503 && attempt < BUSY_RETRIES) {
        await new Promise((done) => setTimeout(done, 300 * (attempt + 1)));
        if (controller.signal.aborted) return null;
        continue;
      }
      throw new Problem(await answer.json().catch(() => ({})), answer.status);
    }
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw error;
  } finally {
    if (open.get(kind) === controller) open.delete(kind);
  }
}

export function forget(kind) {
  open.get(kind)?.abort();
}
