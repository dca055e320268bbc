// Asks the service that serves this page, and no other host.

let key = sessionStorage.getItem("gencaps-key");

/** What the service refused, in its own words. */
export class Refused extends Error {}

async function request(path, options = {}) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ detail: answer.statusText }));
  const refused = new Refused(said.detail);
  refused.status = answer.status;
  throw refused;
}

export const setKey = (given) => {
  key = given;
  sessionStorage.setItem("gencaps-key", given);
};

export const listModels = async () => (await (await request("v1/models")).json()).models;
export const examplesOf = async (id) => (await request(`v1/models/${encodeURIComponent(id)}/examples`)).json();

const post = (id, act, question, accept) => request(`v1/models/${encodeURIComponent(id)}/${act}`, {
  method: "POST", body: JSON.stringify(question), headers: { "Content-Type": "application/json", Accept: accept },
});

/** Asks a model; gives the answer as an object. */
export const ask = async (id, act, question) => (await post(id, act, question, "application/json")).json();

/** Asks a model for a file: image/png or image/gif. */
export const askFile = async (id, act, question, kind) => (await post(id, act, question, kind)).blob();

/** Runs one job at a time, and of those that come meanwhile the last alone: a slider never queues. */
export class Latest {
  #busy = false;
  #next = null;

  async run(job) {
    if (this.#busy) {
      this.#next = job;
      return;
    }
    this.#busy = true;
    try {
      await job();
    } finally {
      this.#busy = false;
      const next = this.#next;
      this.#next = null;
      if (next) this.run(next).catch(() => {});
    }
  }
}
