/* The crew: threads that run the groups of a launch together with the one that launches (direct.c). Waking a thread takes longer than most launches, so those
   that have just worked look out for more for a while, and only work that is worth it wakes them; where they come late, the caller has done it alone. */
#include "native.h"
#include "crew.h"

#ifdef __linux__

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HELPERS = MOST_MEMBERS - 1, PARTS = 4 };            /* parts that each thread takes, so that one which was held up holds up nobody else */
static const size_t STACK = 8 << 20;                            /* bytes: Intel's kernels have their local memory there */
static const double LOOK_OUT = 150e-6, ALONE = 2.5e-6, WAKE = 15e-6, OWED = 60e-6, LATE = 200e-6, LEAST_REST = 5e-3, MOST_REST = 1.0;       /* seconds */

static struct {
    unsigned turn;                  /* odd while there is work: helpers sleep on it */
    unsigned inside;                /* helpers that may look at the work */
    unsigned asleep, helpers;
    size_t next, end, part;         /* groups: the next that nobody has taken, their number, how many are taken at once */
    Work *work;
    void *given;
    double owed;                    /* what helpers would have saved while they slept */
    double rest, until;             /* how long the caller works alone after they kept it waiting, and until when */
} crew __attribute__((aligned(128)));

/* Linux wakes a thread near the one that wakes it, where it would wait for its turn: each helper has a core, and moves where the caller comes to run on it. */
static struct {
    pid_t thread[MOST_MEMBERS];
    int core[MOST_MEMBERS], spare;          /* of each helper; -1: any. The core that no helper has */
    unsigned char helper[CPU_SETSIZE];      /* which one has a core, 0: none */
} places;

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

double seconds_awake(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Take parts until none is left: how many groups they had. */
static size_t take_parts(unsigned member)
{
    size_t done = 0, first, part = crew.part, end = crew.end;
    while ((first = __atomic_fetch_add(&crew.next, part, __ATOMIC_RELAXED)) < end) {
        size_t last = first + part < end ? first + part : end;
        crew.work(crew.given, member, first, last);
        done += last - first;
    }
    return done;
}

/* The next turn with work that follows ``seen``: looked out for, slept for in the end. */
static unsigned next_turn(unsigned seen)
{
    double until = seconds_awake() + LOOK_OUT;
    for (unsigned i = 1;; i++) {
        unsigned turn = __atomic_load_n(&crew.turn, __ATOMIC_ACQUIRE);
        if (turn != seen && turn & 1)
            return turn;
        if (i % 64)
            pause_briefly();
        else if (seconds_awake() < until)
            sched_yield();                                      /* another thread may need this core */
        else {
            __atomic_add_fetch(&crew.asleep, 1, __ATOMIC_SEQ_CST);
            syscall(SYS_futex, &crew.turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
            __atomic_sub_fetch(&crew.asleep, 1, __ATOMIC_SEQ_CST);
            until = seconds_awake() + LOOK_OUT;
        }
    }
}

static void *help(void *number)
{
    unsigned member = (unsigned)(uintptr_t)number, turn = 0;
    __atomic_store_n(&places.thread[member], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (;;) {
        turn = next_turn(turn);
        __atomic_add_fetch(&crew.inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&crew.turn, __ATOMIC_SEQ_CST) == turn)          /* it lasts until all have left */
            take_parts(member);
        __atomic_sub_fetch(&crew.inside, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void give_core(unsigned member, int core)
{
    cpu_set_t one;
    pid_t thread;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    while ((thread = __atomic_load_n(&places.thread[member], __ATOMIC_ACQUIRE)) == 0)
        sched_yield();                                          /* it has just been started */
    sched_setaffinity(thread, sizeof one, &one);
    places.helper[core] = (unsigned char)member;
    places.core[member] = core;
}

/* A core for each helper, where there is one more than helpers. */
static void give_cores(void)
{
    cpu_set_t allowed;
    unsigned member = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) != (int)crew.helpers + 1)
        return;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed)) {
            if (member)
                give_core(member, core);
            else
                places.spare = core;
            member++;
        }
}

/* Keep helpers off the core of the calling thread. */
static void make_way(void)
{
    int core = sched_getcpu();
    unsigned member = core >= 0 && core < CPU_SETSIZE ? places.helper[core] : 0;
    if (member) {
        places.helper[core] = 0;
        give_core(member, places.spare);
        places.spare = core;
    }
}

/* Have ``n`` helpers, or as many as there can be. */
int hire(int n, int placed)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);                /* signals are the interpreter's */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    while (crew.helpers < (unsigned)n && crew.helpers < MOST_HELPERS
           && pthread_create(&thread, &attributes, help, (void *)(uintptr_t)(crew.helpers + 1)) == 0)
        crew.helpers++;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (placed)
        give_cores();
    return (int)crew.helpers;
}

/* Whether helpers are worth it for work that takes one thread so many seconds: 2 where those that sleep have to be woken. */
static int called_up(double seconds, double now)
{
    unsigned asleep = __atomic_load_n(&crew.asleep, __ATOMIC_RELAXED);
    if (seconds < ALONE || now < crew.until)
        return 0;
    if (asleep == 0)
        return 1;
    crew.owed += seconds - ALONE;
    if (seconds < WAKE && crew.owed < OWED)
        return asleep < crew.helpers;
    crew.owed = 0.0;
    return 2;
}

/* Where another program has a helper's core, it may stand still in the middle of its part: the caller waited ``seconds`` after ``own`` ones of work. */
static void judge(double own, double seconds, double now)
{
    if (seconds > own + LATE) {
        crew.rest = crew.rest < LEAST_REST ? LEAST_REST : 2.0 * crew.rest < MOST_REST ? 2.0 * crew.rest : MOST_REST;
        crew.until = now + crew.rest;
    } else if (seconds > 0.0) {
        crew.rest *= 0.9;
    }
}

/* Run ``n`` groups of work that takes one thread ``seconds``, or nobody knows how long (0): how long it would take the calling thread alone. */
double work_together(Work *work, void *given, size_t n, double seconds)
{
    static unsigned calls;
    if (n <= 1 || !crew.helpers || (seconds > 0.0 && seconds < ALONE / 8 && ++calls % 16)) {           /* nothing to share: a look at the clock is dearer */
        work(given, 0, 0, n);
        return 0.0;
    }
    double start = seconds_awake();
    int called = n > 1 && crew.helpers ? called_up(seconds, start) : 0;
    if (!called) {
        work(given, 0, 0, n);
        return seconds_awake() - start;
    }
    make_way();
    crew.work = work, crew.given = given, crew.end = n;
    crew.part = n / ((crew.helpers + 1) * PARTS);
    crew.part = crew.part ? crew.part : 1;
    __atomic_store_n(&crew.next, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&crew.turn, 1, __ATOMIC_SEQ_CST);
    if (called > 1)
        syscall(SYS_futex, &crew.turn, FUTEX_WAKE_PRIVATE, MOST_HELPERS, NULL, NULL, 0);
    double began = seconds_awake();
    size_t done = take_parts(0);
    double ended = seconds_awake(), own = ended - began;
    __atomic_add_fetch(&crew.turn, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 1; __atomic_load_n(&crew.inside, __ATOMIC_SEQ_CST); i++)
        if (i % 1024)
            pause_briefly();
        else
            sched_yield();
    if (done < n) {
        double now = seconds_awake();
        judge(own, now - ended, now);
    }
    return done ? own * (double)n / (double)done : own * (double)(crew.helpers + 1);
}
#else
int hire(int n, int placed)
{
    return 0;
}

double work_together(Work *work, void *given, size_t n, double seconds)
{
    work(given, 0, 0, n);
    return 0.0;
}
#endif
