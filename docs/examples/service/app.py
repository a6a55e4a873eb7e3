"""A web service that finds the ten most similar items: GET /similar/ITEM, as FastAPI's.

    LIBRARY=arrayd uvicorn app:app --workers 4        # attaches the array that publish.py has published as "index"
    LIBRARY=numpy uvicorn app:app --workers 4         # every worker loads index.npy

The two differ in how a worker gets the index. INDEX names the file, or the published array.
"""
import importlib
import os

from fastapi import FastAPI, HTTPException

LIBRARY = os.environ.get("LIBRARY", "arrayd")
INDEX = os.environ.get("INDEX", "index.npy" if LIBRARY == "numpy" else "index")
TOP = 10

xp = importlib.import_module(LIBRARY)
index = xp.load(INDEX) if LIBRARY == "numpy" else xp.attach(INDEX)
app = FastAPI()


def find_similar(item):
    """The items whose rows have the largest products with that of the item, best first, and these products."""
    scores = index @ index[item]
    best = xp.argpartition(scores, -TOP)[-TOP:]
    best = best[xp.argsort(-scores[best])]
    return best.tolist(), scores[best].tolist()


@app.get("/similar/{item}")
def similar(item: int):
    """The answer as JSON."""
    if not 0 <= item < len(index):
        raise HTTPException(404, f"there are items 0 to {len(index) - 1}")
    items, scores = find_similar(item)
    return {"item": item, "similar": items, "scores": scores, "process": os.getpid()}
