/* A model of resume (wire.md, section 13) and of the journal (docs/internals/journal.md) for the model checker spin.
 *
 *     client ──DATA──▶ up[c] ──▶ server: received ─▶ executed ─▶ checkpoint begun ─▶ committed
 *            ◀─ANSWER─ down[c] ◀──────────────────── only what is committed is answered ┘
 *
 * A client sends five operations and awaits the answer of each. Connections break with all that is under way, and the
 * worker is killed, a bounded number of times at any instant. A stranger shows a secret that was used. The checker
 * visits every order of events and proves:
 *
 *   - No message is lost or doubled in either direction: the assertions about numbers.
 *   - What a client has seen is never undone. Each value is right, or says that it was lost: check_answer, kill_worker.
 *   - A secret that was used is refused: take_resume.
 *   - The client reaches its end: there is no invalid end state, which is spin's word for a deadlock.
 *
 * Each MUTANT_... takes a rule away. The checker must then find a fault, which tests/build/test_model.py tries. */

#define OPS 5
#ifndef BREAKS
#define BREAKS 2 /* connections that break by themselves */
#endif
#ifndef KILLS
#define KILLS 2 /* workers that are killed */
#endif
#define STRANGER 7                /* the stranger's connection; those below are the client's */
#define LOST 255                  /* an array that has lost its contents, and says so */
#define NONE 254                  /* no checkpoint has begun */
#define RIGHT(i) (i == 1 -> 3 : (i == 4 -> 9 : 4))

mtype = { DATA, NOTE, RESUME, RESUMED, ANSWER, BYE };

/* Connection c carries messages with two numbers each. */
chan up[STRANGER + 1] = [1] of { mtype, byte, byte };
chan down[STRANGER + 1] = [1] of { mtype, byte, byte };
bool open[STRANGER + 1];

/* What outlives a worker: the journal, memory, and the front. */
byte current = 0;                 /* connection that the server takes for the client's */
byte received = 0;                /* client's messages in the journal */
byte taken = 0;                   /* answers that the client has noted as taken; the server forgets them */
byte committed = 0;               /* operations that the committed checkpoint has */
bool noted = false;               /* the change in place was written down before it was executed */
bool freed = false;               /* the block of x may be used again */
bool x_lost = false, y_lost = false;
byte x = 0, y = 0;                /* contents of the two blocks */
byte answer[OPS + 1];
byte oldest = 0, newest = 0;      /* secrets that are good */
byte used = 0;                    /* secrets before this one are used up: what the checker knows of it */

/* What a worker has. */
byte executed = 0;
byte begun = NONE;                /* operations that the checkpoint has which is begun */
byte sent = 0;                    /* answers that were sent, counted over all connections */

/* What the client has. */
byte mine = 0;                    /* its connection */
byte seen = 0;                    /* answers that it has read */
bool safe = false;                /* it has seen that the change in place is done */
bool done = false;

byte breaks = BREAKS, kills = KILLS;

/* Variables that are not needed any more have one value, so that the checker has fewer states to visit. */
inline clear(a, b) {
    a = 0;
    b = 0
}

/* ---- the worker ---- */

/* 1: x is made. 2: x is changed in place. 3: y is made from x, which is then dropped. 4: z is made, in the block of x
 * if that is free. 5: y is read. */
inline execute_next() {
    executed++;
    if
    :: executed == 1 ->
        x = 3;
        answer[1] = x
    :: executed == 2 ->
        if
        :: noted -> x_lost = true     /* a worker that was killed may have changed it */
        :: else -> x++
        fi;
#ifndef MUTANT_CHANGE_IS_NOT_NOTED
        noted = true;
#endif
        answer[2] = (x_lost -> LOST : x)
    :: executed == 3 ->
        y_lost = x_lost;
        y = x;
#ifdef MUTANT_MEMORY_IS_FREED_AT_ONCE
        freed = true;
#endif
        answer[3] = (y_lost -> LOST : y)
    :: executed == 4 ->
        x = (freed -> 9 : x);
        answer[4] = 9
    :: else -> answer[5] = (y_lost -> LOST : y)
    fi
}

inline commit_checkpoint() {
    committed = begun;
    begun = NONE;
#ifdef MUTANT_COMMIT_FORGETS_LATER_CHANGES
    noted = false;
#else
    noted = (committed >= 2 -> false : noted);
#endif
    freed = (committed >= 3 -> true : freed) /* a deferred free: no checkpoint has x any more */
}

/* The next worker begins at the committed checkpoint, with memory as it is. Connections end. */
inline kill_worker() {
    kills--;
    assert(committed >= seen); /* nothing that the client has seen is undone */
    executed = committed;
    begun = NONE;
    x_lost = (committed >= 2 -> x_lost : false);
    y_lost = (committed >= 3 -> y_lost : false);
    freed = committed >= 3;
    open[current] = false
}

/* ---- the server's end of a connection ---- */

/* The first bytes on a connection whose `resumed` brought a secret use up the secrets before it. The model's client
 * sends them at once, and its note tells which secret it has read. */
inline use_secret(shown) {
    used = (shown > used -> shown : used);
#ifndef MUTANT_USED_SECRETS_STAY_GOOD
    oldest = used;
#endif
    skip
}

inline take_resume(c, secret, has) {
    if
    :: secret >= oldest && secret <= newest ->
        assert(c != STRANGER);  /* who shows a used secret gets nothing */
        use_secret(secret);     /* the client has read the `resumed` that brought it */
        open[current] = (c == current -> open[current] : false);
        current = c;
        assert(has >= taken);   /* nothing was forgotten that the client lacks */
        newest++;
#ifndef MUTANT_SERVER_SENDS_FROM_ITS_OWN_COUNT
        sent = has;
#endif
        if
        :: open[c] -> down[c] ! RESUMED(newest, received)
        :: else
        fi
    :: else ->
        if
        :: open[c] -> down[c] ! BYE(0, 0)
        :: else
        fi
    fi
}

/* A resume may come late: after the client has given up its connection, and asked again by the next one. */
#define ON_RESUME(c) :: atomic { up[c] ? [RESUME(i, has)] -> \
    up[c] ? RESUME(i, has); take_resume(c, i, has); clear(i, has) }

active proctype server() {
    byte i, has;
end:
    do
    :: atomic { open[current] && up[current] ? [DATA(i, has)] ->
        up[current] ? DATA(i, has);
        assert(i == received + 1); /* neither lost nor doubled */
        received = i;
        clear(i, has) }
    :: atomic { open[current] && up[current] ? [NOTE(i, has)] ->
        up[current] ? NOTE(i, has);
        use_secret(has);
        taken = (i > taken -> i : taken);
        clear(i, has) }
    ON_RESUME(1) ON_RESUME(2) ON_RESUME(3) ON_RESUME(4) ON_RESUME(5) ON_RESUME(6) ON_RESUME(STRANGER)
    :: atomic { executed < received -> execute_next() }
    :: atomic { begun == NONE && executed > committed -> begun = executed }
    :: atomic { begun != NONE -> commit_checkpoint() }
#ifdef MUTANT_ANSWERS_DO_NOT_WAIT
    :: atomic { open[current] && sent < executed && nfull(down[current]) ->
#else
    :: atomic { open[current] && sent < committed && nfull(down[current]) ->
#endif
        sent++;
#ifdef MUTANT_SERVER_FORGETS_WHAT_IT_HAS_SENT
        taken = sent;
#endif
        down[current] ! ANSWER(sent, answer[sent]) }
    :: atomic { kills > 0 && !done -> kill_worker() }
    od
}

/* ---- the client ---- */

inline check_answer(i, value) {
    assert(i == seen + 1); /* neither lost nor doubled */
    assert(value == RIGHT(i) || (value == LOST && i != 1 && i != 4 && !safe));
    safe = safe || (i == 2 && value != LOST);
    seen = i
}

/* What was under way on a connection is lost, except a resume, which may come late. */
inline lose_messages(c) {
    do
    :: nempty(down[c]) -> down[c] ? _, _, _
    :: empty(down[c]) -> break
    od;
    do
    :: up[c] ? [DATA, _, _] -> up[c] ? DATA, _, _
    :: up[c] ? [NOTE, _, _] -> up[c] ? NOTE, _, _
    :: up[c] ? [RESUME, _, _] -> break
    :: empty(up[c]) -> break
    od
}

active proctype client() {
    byte secret = 0, put = 0, kept = 0, i, value; /* messages that were put on the connection, and those not kept */
    bool welcome = true;
    open[0] = true;
    open[STRANGER] = true;
    do
    :: atomic { welcome && open[mine] && put < OPS && nfull(up[mine]) ->
        put++;
#ifdef MUTANT_CLIENT_FORGETS_WHAT_IT_HAS_SENT
        kept = put;
#endif
        up[mine] ! DATA(put, 0) }
    :: atomic { welcome && down[mine] ? [ANSWER(i, value)] ->
        down[mine] ? ANSWER(i, value);
        check_answer(i, value);
        kept = (i > kept -> i : kept);
        if
        :: seen == OPS -> done = true; break
        :: seen < OPS && open[mine] && nfull(up[mine]) -> up[mine] ! NOTE(seen, secret)
        :: seen < OPS && (!open[mine] || full(up[mine]))
        fi;
        clear(i, value) }
    :: atomic { !welcome && open[mine] && down[mine] ? [RESUMED(i, value)] ->
        down[mine] ? RESUMED(i, value);
        assert(value >= kept); /* the client has all that the server lacks */
        secret = i;
        put = value;
        welcome = true;
        up[mine] ! NOTE(seen, secret);
        clear(i, value) }
    :: atomic { !open[mine] -> /* it comes again, with the last secret that it has read */
        lose_messages(mine);
        mine++;
        assert(mine < STRANGER);
        open[mine] = true;
        welcome = false;
        up[mine] ! RESUME(secret, seen) }
    od
}

/* ---- what goes wrong ---- */

active proctype network() {
end:
    do
    :: atomic { breaks > 0 && !done && open[mine] -> breaks--; open[mine] = false }
    od
}

active proctype stranger() {
    byte i, unused;
end:
    atomic { used > 0 -> up[STRANGER] ! RESUME(0, 0) }
    down[STRANGER] ? BYE(i, unused)
}
