/* Session entries: which worker has each session. A hash table of chains, by session id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/front/front.h"

struct ad_session_entry {
    ad_session_entry *next; /* the next entry of the chain */
    /* key: the number by which a forked client knows its session until it learns the id; 0: there is none. */
    uint64_t session, key;
    ad_domain *domain;
    char who[AD_PRINCIPAL_SIZE];
    char token[AD_PRINCIPAL_SIZE];     /* owner of the token by which it has come; "": it has come by none */
    int64_t expires;                   /* when the token does, in seconds since 1970; 0: never, or this is not known */
    ad_session_entry *later, *earlier; /* neighbours among those whose token expires */
    int64_t away;                      /* since when the session waits for its client, ns; 0: it does not */
    bool resumable;
    bool for_other; /* its client is a server that has come for the principal */
    bool lost;      /* its worker was killed, and the successor has not said that it has the session */
    bool forsaken;  /* its place was given to another session */
};

static ad_session_entry **get_chain(ad_front *f, uint64_t session) {
    return &f->entries.chains[session % AD_SESSION_ENTRY_CHAINS];
}

int ad__session_entry_add(ad_front *f, const ad_note *note, ad_domain *d) {
    ad_session_entry *s = ad__os.calloc(1, sizeof *s), **chain = get_chain(f, note->id);
    if (!s) return AD_E_MEMORY;
    s->next = *chain;
    s->session = note->id;
    s->key = note->id & AD_FORKED_SESSION ? note->size : 0;
    s->domain = d;
    s->resumable = note->resumable;
    s->for_other = note->grants.may & AD_GRANT_PEER;
    snprintf(s->who, sizeof s->who, "%s", note->who);
    *chain = s;
    return 0;
}

/* ---- those that expire ---- */

/* Sessions of one token follow each other. */
static bool expires_before(const ad_session_entry *a, const ad_session_entry *b) {
    return a->expires != b->expires ? a->expires < b->expires : strcmp(a->token, b->token) < 0;
}

static void link_expiring(ad_front *f, ad_session_entry *s) {
    if (!s->expires) return;
    s->earlier = f->entries.last;
    while (s->earlier && expires_before(s, s->earlier)) s->earlier = s->earlier->earlier;
    ad_session_entry **before = s->earlier ? &s->earlier->later : &f->entries.first;
    s->later = *before;
    *before = s;
    *(s->later ? &s->later->earlier : &f->entries.last) = s;
}

static void unlink_expiring(ad_front *f, ad_session_entry *s) {
    if (!s->expires) return;
    *(s->earlier ? &s->earlier->later : &f->entries.first) = s->later;
    *(s->later ? &s->later->earlier : &f->entries.last) = s->earlier;
}

static void set_expiry(ad_front *f, ad_session_entry *s, int64_t expires) {
    unlink_expiring(f, s);
    s->expires = expires;
    link_expiring(f, s);
}

void ad__session_entry_renew(ad_front *f) {
    int64_t expires;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            if (*s->token && ad__principals_expiry(f->principals, s->token, &expires)) set_expiry(f, s, expires);
}

/* ---- finding and counting ---- */

static bool is_entry_of(const ad_session_entry *s, const char *who) { return !who || !strcmp(s->who, who); }

static bool is_entry_by(const ad_session_entry *s, const char *who, ad_clients clients) {
    return is_entry_of(s, who) && (clients == AD_CLIENTS_ALL || s->for_other == (clients == AD_CLIENTS_PEERS));
}

uint64_t ad__session_entry_by_key(const ad_front *f, uint64_t key, const char *who) {
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (const ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            if (s->key == key && is_entry_of(s, who)) return s->session;
    return 0;
}

ad_domain *ad__session_entry_find(const ad_front *f, uint64_t session, const char *who, bool *own) {
    const ad_session_entry *s = f->entries.chains[session % AD_SESSION_ENTRY_CHAINS];
    while (s && s->session != session) s = s->next;
    *own = s && !strcmp(s->who, who);
    return s && !s->forsaken ? s->domain : NULL;
}

/* Find the pointer that links to the entry. */
static ad_session_entry **find_entry_link(ad_front *f, uint64_t session, const ad_domain *d) {
    ad_session_entry **link = get_chain(f, session);
    while (*link && ((*link)->session != session || (*link)->domain != d)) link = &(*link)->next;
    return link;
}

const char *ad__session_entry_who(ad_front *f, uint64_t session, const ad_domain *d) {
    const ad_session_entry *s = *find_entry_link(f, session, d);
    return s ? s->who : NULL;
}

bool ad__session_entry_is_of(ad_front *f, uint64_t session, const ad_domain *d) {
    return *find_entry_link(f, session, d);
}

void ad__session_entry_set_token(ad_front *f, uint64_t session, const ad_domain *d, const ad_entrant *who) {
    ad_session_entry *s = *find_entry_link(f, session, d);
    snprintf(s->token, sizeof s->token, "%s", who->token);
    set_expiry(f, s, who->expires);
}

void ad__session_entry_set_away(ad_front *f, uint64_t session, const ad_domain *d, bool away) {
    ad_session_entry *s = *find_entry_link(f, session, d);
    if (!s) return;
    s->away = away ? ad__os_now() : 0;
    s->forsaken = s->lost = false;
}

bool ad__session_entry_make_room(ad_front *f, const char *who, ad_clients clients) {
    ad_session_entry *oldest = NULL;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            if (s->away && !s->forsaken && is_entry_by(s, who, clients) && (!oldest || s->away < oldest->away))
                oldest = s;
    if (!oldest) return false;
    const ad_note note = {.kind = AD_NOTE_FORSAKE, .id = oldest->session};
    oldest->forsaken = !ad__domain_tell(oldest->domain, &note, -1);
    return oldest->forsaken;
}

static void remove_entry(ad_front *f, ad_session_entry **link) {
    ad_session_entry *s = *link;
    unlink_expiring(f, s);
    *link = s->next;
    free(s);
}

bool ad__session_entry_remove(ad_front *f, uint64_t session, const ad_domain *d) {
    ad_session_entry **link = find_entry_link(f, session, d);
    if (!*link) return false;
    remove_entry(f, link);
    return true;
}

uint64_t ad__session_entry_remove_lost(ad_front *f, const ad_domain *d) {
    uint64_t n = 0;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++) {
        ad_session_entry **link = &f->entries.chains[i];
        while (*link) {
            bool over = (*link)->domain == d && (*link)->lost;
            n += over;
            if (over) remove_entry(f, link);
            else link = &(*link)->next;
        }
    }
    return n;
}

uint64_t ad__session_entry_lose_all(ad_front *f, const ad_domain *d) {
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            if (s->domain == d) s->lost = !s->resumable;
    uint64_t over = ad__session_entry_remove_lost(f, d);
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next) s->lost = s->lost || s->domain == d;
    return over;
}

uint64_t ad__session_entry_migrate(ad_front *f, const ad_domain *from, ad_domain *to) {
    uint64_t n = 0;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next) {
            if (s->domain != from || strcmp(s->who, ad__domain_name(to))) continue;
            s->domain = to;
            s->lost = true;
            n++;
        }
    return n;
}

static void hand_over_entry(ad_front *f, ad_session_entry *s, ad_hand *h) {
    char domain[AD_PRINCIPAL_SIZE] = "";
    uint64_t away = (uint64_t)s->away, expires = (uint64_t)s->expires;
    if (s->domain) snprintf(domain, sizeof domain, "%s", ad__domain_name(s->domain));
    ad__hand_number(h, &s->session);
    ad__hand_number(h, &s->key);
    ad__hand_text(h, domain, sizeof domain);
    ad__hand_text(h, s->who, sizeof s->who);
    ad__hand_text(h, s->token, sizeof s->token);
    ad__hand_number(h, &expires);
    ad__hand_number(h, &away);
    ad__hand_flag(h, &s->resumable);
    ad__hand_flag(h, &s->for_other);
    ad__hand_flag(h, &s->lost);
    ad__hand_flag(h, &s->forsaken);
    s->away = (int64_t)away;
    s->expires = (int64_t)expires;
    if (h->reading && !(s->domain = ad__domain_named(f, domain))) h->failed = true;
}

static void read_entry(ad_front *f, ad_hand *h) {
    ad_session_entry *s = ad__os.calloc(1, sizeof *s);
    if (!s) h->failed = true;
    else hand_over_entry(f, s, h);
    if (h->failed) {
        free(s);
        return;
    }
    ad_session_entry **chain = get_chain(f, s->session);
    s->next = *chain;
    *chain = s;
    link_expiring(f, s);
    ad__domain_count_session(s->domain);
}

void ad__session_entry_hand_over(ad_front *f, ad_hand *h) {
    size_t count = 0;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (const ad_session_entry *s = f->entries.chains[i]; s; s = s->next) count++;
    count = ad__hand_count(h, count);
    if (h->reading) {
        for (size_t i = 0; i < count && !h->failed; i++) read_entry(f, h);
        return;
    }
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (ad_session_entry *s = f->entries.chains[i]; s; s = s->next) hand_over_entry(f, s, h);
}

void ad__session_entry_remove_all(ad_front *f, const ad_domain *d) {
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++) {
        ad_session_entry **link = &f->entries.chains[i];
        while (*link) {
            if (!d || (*link)->domain == d) remove_entry(f, link);
            else link = &(*link)->next;
        }
    }
}

/* Have the worker end a session. False: it cannot be told now, or has been told to forsake the session. */
static bool end_session(const ad_session_entry *s, const char *why) {
    ad_note note = {.kind = AD_NOTE_KILL, .id = s->session};
    if (s->forsaken || !ad__domain_is_ready(s->domain)) return false;
    snprintf(note.text, sizeof note.text, "%s", why);
    return !ad__domain_tell(s->domain, &note, -1);
}

uint64_t ad__session_entry_end(ad_front *f, const char *who, const char *why) {
    uint64_t n = 0;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (const ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            if (!strcmp(s->who, who) || !strcmp(s->token, who)) n += end_session(s, why);
    return n;
}

void ad__session_entry_end_expired(ad_front *f, int64_t now, const char *why) {
    const ad_session_entry *s = f->entries.first;
    while (s && s->expires <= now) {
        const ad_session_entry *first = s;
        uint64_t n = 0;
        for (; s && s->expires == first->expires && !strcmp(s->token, first->token); s = s->later)
            n += end_session(s, why);
        if (n) ad__log(sessions_dismissed, first->token, n, why);
    }
}

uint64_t ad__session_entry_count(const ad_front *f, const char *who, ad_clients clients) {
    uint64_t n = 0;
    for (size_t i = 0; i < AD_SESSION_ENTRY_CHAINS; i++)
        for (const ad_session_entry *s = f->entries.chains[i]; s; s = s->next)
            n += !s->forsaken && is_entry_by(s, who, clients);
    return n;
}
