target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define internal void @parallel.parallel0(i64 %n, ptr noalias %A, ptr noalias %B, double %x, i1 %negate, i64 %t, i64 %p) #0 {
entry:
  %.1 = mul i64 %n, %t
  %.2.zero = icmp eq i64 %p, 0
  %.2.negates = icmp eq i64 %p, -1
  %.2.unsafe = or i1 %.2.zero, %.2.negates
  %.2.divisor = select i1 %.2.unsafe, i64 1, i64 %p
  %.2.quotient = sdiv i64 %.1, %.2.divisor
  %.2.negated = sub i64 0, %.1
  %.2.nonzero = select i1 %.2.negates, i64 %.2.negated, i64 %.2.quotient
  %.2.truncated = select i1 %.2.zero, i64 0, i64 %.2.nonzero
  %.2.remainder = srem i64 %.1, %.2.divisor
  %.2.inexact = icmp ne i64 %.2.remainder, 0
  %.2.signs = xor i64 %.2.remainder, %p
  %.2.differ = icmp slt i64 %.2.signs, 0
  %.2.below = and i1 %.2.inexact, %.2.differ
  %.2.lesser = add i64 %.2.truncated, -1
  %.2 = select i1 %.2.below, i64 %.2.lesser, i64 %.2.truncated
  %.3 = add i64 %t, 1
  %.4 = mul i64 %n, %.3
  %.5.zero = icmp eq i64 %p, 0
  %.5.negates = icmp eq i64 %p, -1
  %.5.unsafe = or i1 %.5.zero, %.5.negates
  %.5.divisor = select i1 %.5.unsafe, i64 1, i64 %p
  %.5.quotient = sdiv i64 %.4, %.5.divisor
  %.5.negated = sub i64 0, %.4
  %.5.nonzero = select i1 %.5.negates, i64 %.5.negated, i64 %.5.quotient
  %.5.truncated = select i1 %.5.zero, i64 0, i64 %.5.nonzero
  %.5.remainder = srem i64 %.4, %.5.divisor
  %.5.inexact = icmp ne i64 %.5.remainder, 0
  %.5.signs = xor i64 %.5.remainder, %p
  %.5.differ = icmp slt i64 %.5.signs, 0
  %.5.below = and i1 %.5.inexact, %.5.differ
  %.5.lesser = add i64 %.5.truncated, -1
  %.5 = select i1 %.5.below, i64 %.5.lesser, i64 %.5.truncated
  %.6 = mul i64 %n, %t
  %.7.zero = icmp eq i64 %p, 0
  %.7.negates = icmp eq i64 %p, -1
  %.7.unsafe = or i1 %.7.zero, %.7.negates
  %.7.divisor = select i1 %.7.unsafe, i64 1, i64 %p
  %.7.quotient = sdiv i64 %.6, %.7.divisor
  %.7.negated = sub i64 0, %.6
  %.7.nonzero = select i1 %.7.negates, i64 %.7.negated, i64 %.7.quotient
  %.7.truncated = select i1 %.7.zero, i64 0, i64 %.7.nonzero
  %.7.remainder = srem i64 %.6, %.7.divisor
  %.7.inexact = icmp ne i64 %.7.remainder, 0
  %.7.signs = xor i64 %.7.remainder, %p
  %.7.differ = icmp slt i64 %.7.signs, 0
  %.7.below = and i1 %.7.inexact, %.7.differ
  %.7.lesser = add i64 %.7.truncated, -1
  %.7 = select i1 %.7.below, i64 %.7.lesser, i64 %.7.truncated
  %.8 = sub i64 %.5, %.7
  %.9 = add i64 %.2, %.8
  br label %for.10.entry
for.10.entry:
  br label %for.10.head
for.10.head:
  %i = phi i64 [ %.2, %for.10.entry ], [ %i.next, %for.10.latch ]
  %i.more = icmp slt i64 %i, %.9
  br i1 %i.more, label %for.10.body, label %for.10.end
for.10.body:
  br i1 %negate, label %choose.11.then, label %choose.11.else
choose.11.then:
  %.12.at = getelementptr double, ptr %A, i64 %i
  %.12 = load double, ptr %.12.at, align 8
  %.13 = call double @exp(double %.12)
  %.14 = fmul double %.13, %x
  br label %choose.11.then.end
choose.11.then.end:
  br label %choose.11.end
choose.11.else:
  %.15.at = getelementptr double, ptr %A, i64 %i
  %.15 = load double, ptr %.15.at, align 8
  br label %choose.11.else.end
choose.11.else.end:
  br label %choose.11.end
choose.11.end:
  %.16 = phi double [ %.14, %choose.11.then.end ], [ %.15, %choose.11.else.end ]
  %.17.at = getelementptr double, ptr %B, i64 %i
  store double %.16, ptr %.17.at, align 8
  br label %for.10.latch
for.10.latch:
  %i.next = add i64 %i, 1
  br label %for.10.head
for.10.end:
  ret void
}

define internal void @parallel.parallel0.entry(ptr %captures, i64 %task, i64 %tasks) #0 {
  %at0 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %captures, i32 0, i32 0
  %capture0 = load i64, ptr %at0
  %at1 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %captures, i32 0, i32 1
  %capture1 = load ptr, ptr %at1
  %at2 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %captures, i32 0, i32 2
  %capture2 = load ptr, ptr %at2
  %at3 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %captures, i32 0, i32 3
  %capture3 = load double, ptr %at3
  %at4 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %captures, i32 0, i32 4
  %capture4 = load i1, ptr %at4
  call void @parallel.parallel0(i64 %capture0, ptr %capture1, ptr %capture2, double %capture3, i1 %capture4, i64 %task, i64 %tasks)
  ret void
}

define i32 @parallel(ptr noalias %A, ptr noalias %B, double %x, i8 %negate.passed, i64 %n, i32 %num_threads) #0 {
entry:
  %.1 = alloca { i64, ptr, ptr, double, i1 }
  %negate = icmp ne i8 %negate.passed, 0
  %region.2.alone = icmp eq i32 %num_threads, 1
  br i1 %region.2.alone, label %region.2.serial, label %region.2.parallel
region.2.serial:
  call void @parallel.parallel0(i64 %n, ptr %A, ptr %B, double %x, i1 %negate, i64 0, i64 1)
  br label %region.2.end
region.2.parallel:
  %region.2.at0 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %.1, i32 0, i32 0
  store i64 %n, ptr %region.2.at0
  %region.2.at1 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %.1, i32 0, i32 1
  store ptr %A, ptr %region.2.at1
  %region.2.at2 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %.1, i32 0, i32 2
  store ptr %B, ptr %region.2.at2
  %region.2.at3 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %.1, i32 0, i32 3
  store double %x, ptr %region.2.at3
  %region.2.at4 = getelementptr { i64, ptr, ptr, double, i1 }, ptr %.1, i32 0, i32 4
  store i1 %negate, ptr %region.2.at4
  %region.2.run = load ptr, ptr @refcomp.parallel, align 8
  call void %region.2.run(ptr @parallel.parallel0.entry, ptr %.1, i32 %num_threads)
  br label %region.2.end
region.2.end:
  ret i32 0
}

declare double @exp(double) #1
@refcomp.parallel = weak_odr global ptr @refcomp.threads.run, align 8

@refcomp.threads.busy = linkonce_odr hidden global i32 0, align 64       ; a region runs
@refcomp.threads.workers = linkonce_odr hidden global i32 0, align 4     ; that have been started
@refcomp.threads.watches = linkonce_odr hidden global i32 0, align 4     ; forks are watched
@refcomp.threads.function = linkonce_odr hidden global ptr null, align 8 ; of the region
@refcomp.threads.captures = linkonce_odr hidden global ptr null, align 8
@refcomp.threads.open = linkonce_odr hidden global i32 0, align 64       ; threads of the region, or 0
@refcomp.threads.active = linkonce_odr hidden global i32 0, align 64     ; workers in the region
@refcomp.threads.awaited = linkonce_odr hidden global i32 0, align 4     ; the caller sleeps
; For each thread, in a cache line of its own: how many of its tasks were taken, how often it was
; called to a region, and whether it sleeps until it is called again.
%refcomp.thread = type { i64, i32, i32, [6 x i64] }
@refcomp.threads.all = linkonce_odr hidden global [1024 x %refcomp.thread] zeroinitializer, align 64

declare i64 @syscall(i64, ...) #0
declare i32 @pthread_create(ptr, ptr, ptr, ptr) #0
declare i32 @pthread_detach(i64) #0
declare i32 @__register_atfork(ptr, ptr, ptr, ptr) #0

; FUTEX_WAIT_PRIVATE: sleep if the word still holds `seen`.
define linkonce_odr hidden void @refcomp.threads.sleep(ptr %word, i32 %seen) #0 {
  %ignored = call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 128, i32 %seen, ptr null)
  ret void
}

; FUTEX_WAKE_PRIVATE: wake up to `count` threads.
define linkonce_odr hidden void @refcomp.threads.wake(ptr %word, i32 %count) #0 {
  %ignored = call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 129, i32 %count)
  ret void
}

; Spin for a limited time while the word holds `seen`. Return what it holds.
define linkonce_odr hidden i32 @refcomp.threads.spin(ptr %word, i32 %seen) #0 {
entry:
  br label %look
look:
  %turn = phi i32 [ 0, %entry ], [ %turn.next, %again ]
  %value = load atomic i32, ptr %word seq_cst, align 4
  %changed = icmp ne i32 %value, %seen
  %late = icmp uge i32 %turn, 4000
  %leave = or i1 %changed, %late
  br i1 %leave, label %end, label %again
again:
  call void asm sideeffect "pause", "~{memory}"()
  %turn.next = add i32 %turn, 1
  br label %look
end:
  ret i32 %value
}

; Run tasks of the region until all are taken: those of thread `self` first.
define linkonce_odr hidden void @refcomp.threads.take(ptr %function, ptr %captures, i32 %threads, i32 %self) #0 {
entry:
  %count = zext i32 %threads to i64
  %tasks = mul i64 %count, 4
  %first = zext i32 %self to i64
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %none ]
  %more = icmp ult i64 %turn, %count
  br i1 %more, label %visit, label %end
visit:
  %sum = add i64 %first, %turn
  %wraps = icmp uge i64 %sum, %count
  %wrapped = sub i64 %sum, %count
  %owner = select i1 %wraps, i64 %wrapped, i64 %sum
  %taken = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %owner
  %begin = mul i64 %owner, 4
  br label %ask
ask:
  %seen = load atomic i64, ptr %taken monotonic, align 8
  %left = icmp ult i64 %seen, 4
  br i1 %left, label %claim, label %none
claim:
  %mine = atomicrmw add ptr %taken, i64 1 monotonic
  %won = icmp ult i64 %mine, 4
  br i1 %won, label %run, label %none
run:
  %task = add i64 %begin, %mine
  call void %function(ptr %captures, i64 %task, i64 %tasks)
  br label %ask
none:
  %turn.next = add i64 %turn, 1
  br label %look
end:
  ret void
}

; Run a worker until the process ends. The argument is its number, at least 1.
define linkonce_odr hidden ptr @refcomp.threads.work(ptr %argument) #0 {
entry:
  %number = ptrtoint ptr %argument to i64
  %self = trunc i64 %number to i32
  %calls = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %number, i32 1
  %asleep = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %number, i32 2
  br label %wait
wait:
  %seen = phi i32 [ 0, %entry ], [ %seen, %doze ], [ %called, %pass ]
  %called = call i32 @refcomp.threads.spin(ptr %calls, i32 %seen)
  %same = icmp eq i32 %called, %seen
  br i1 %same, label %doze, label %join
doze:
  store atomic i32 1, ptr %asleep seq_cst, align 4
  call void @refcomp.threads.sleep(ptr %calls, i32 %seen)
  store atomic i32 0, ptr %asleep seq_cst, align 4
  br label %wait
join:
  %active.before = atomicrmw add ptr @refcomp.threads.active, i32 1 seq_cst
  %threads = load atomic i32, ptr @refcomp.threads.open seq_cst, align 4
  %takes.part = icmp ult i32 %self, %threads
  br i1 %takes.part, label %help, label %leave
help:
  %function = load ptr, ptr @refcomp.threads.function, align 8
  %captures = load ptr, ptr @refcomp.threads.captures, align 8
  call void @refcomp.threads.take(ptr %function, ptr %captures, i32 %threads, i32 %self)
  br label %leave
leave:
  %active = atomicrmw sub ptr @refcomp.threads.active, i32 1 seq_cst
  %last = icmp eq i32 %active, 1
  %awaited = load atomic i32, ptr @refcomp.threads.awaited seq_cst, align 4
  %sleeps = icmp ne i32 %awaited, 0
  %must.wake = and i1 %last, %sleeps
  br i1 %must.wake, label %rouse, label %pass
rouse:
  call void @refcomp.threads.wake(ptr @refcomp.threads.active, i32 1)
  br label %pass
pass:
  br label %wait
}

; In a forked child: it has no workers, and no region of another thread runs.
define linkonce_odr hidden void @refcomp.threads.reset() #0 {
  store atomic i32 0, ptr @refcomp.threads.busy seq_cst, align 64
  store i32 0, ptr @refcomp.threads.workers, align 4
  store atomic i32 0, ptr @refcomp.threads.open seq_cst, align 64
  store atomic i32 0, ptr @refcomp.threads.active seq_cst, align 64
  store atomic i32 0, ptr @refcomp.threads.awaited seq_cst, align 4
  ret void
}

; Start workers up to number `wanted`, or as many as the system gives.
define linkonce_odr hidden void @refcomp.threads.start(i32 %wanted) #0 {
entry:
  %thread = alloca i64, align 8
  %watches = load i32, ptr @refcomp.threads.watches, align 4
  %watched = icmp ne i32 %watches, 0
  br i1 %watched, label %look, label %watch
watch:
  store i32 1, ptr @refcomp.threads.watches, align 4
  %ignored = call i32 @__register_atfork(ptr null, ptr null, ptr @refcomp.threads.reset, ptr null)
  br label %look
look:
  %workers = load i32, ptr @refcomp.threads.workers, align 4
  %more = icmp ult i32 %workers, %wanted
  br i1 %more, label %create, label %end
create:
  %number = add i32 %workers, 1
  %wide = zext i32 %number to i64
  %argument = inttoptr i64 %wide to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @refcomp.threads.work, ptr %argument)
  %created = icmp eq i32 %failed, 0
  br i1 %created, label %count, label %end
count:
  %handle = load i64, ptr %thread, align 8
  %ignored.too = call i32 @pthread_detach(i64 %handle)
  store i32 %number, ptr @refcomp.threads.workers, align 4
  br label %look
end:
  ret void
}

; Run all tasks of a region by up to `num_threads` threads, and return when all have ended.
define linkonce_odr hidden void @refcomp.threads.run(ptr %function, ptr %captures, i32 %num_threads) #0 {
entry:
  %positive = call i32 @llvm.smax.i32(i32 %num_threads, i32 1)
  %threads = call i32 @llvm.umin.i32(i32 %positive, i32 1024)
  %got = cmpxchg ptr @refcomp.threads.busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue { i32, i1 } %got, 1
  br i1 %free, label %begin, label %alone
alone:
  call void %function(ptr %captures, i64 0, i64 1)
  ret void
begin:
  %wanted = sub i32 %threads, 1
  call void @refcomp.threads.start(i32 %wanted)
  %count = zext i32 %threads to i64
  br label %clear
clear:
  %number = phi i64 [ 0, %begin ], [ %number.next, %clear ]
  %taken = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %number
  store atomic i64 0, ptr %taken monotonic, align 8
  %number.next = add i64 %number, 1
  %cleared = icmp uge i64 %number.next, %count
  br i1 %cleared, label %open, label %clear
open:
  store ptr %function, ptr @refcomp.threads.function, align 8
  store ptr %captures, ptr @refcomp.threads.captures, align 8
  store atomic i32 %threads, ptr @refcomp.threads.open seq_cst, align 64
  br label %next
next:
  %worker = phi i64 [ 1, %open ], [ %worker.next, %call ], [ %worker.next, %rouse ]
  %more = icmp ult i64 %worker, %count
  br i1 %more, label %call, label %work
call:
  %worker.next = add i64 %worker, 1
  %calls = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %worker, i32 1
  %called = atomicrmw add ptr %calls, i32 1 seq_cst
  %asleep = getelementptr %refcomp.thread, ptr @refcomp.threads.all, i64 %worker, i32 2
  %sleeps = load atomic i32, ptr %asleep seq_cst, align 4
  %is.asleep = icmp ne i32 %sleeps, 0
  br i1 %is.asleep, label %rouse, label %next
rouse:
  call void @refcomp.threads.wake(ptr %calls, i32 1)
  br label %next
work:
  call void @refcomp.threads.take(ptr %function, ptr %captures, i32 %threads, i32 0)
  store atomic i32 0, ptr @refcomp.threads.open seq_cst, align 64
  br label %wait
wait:
  %active = load atomic i32, ptr @refcomp.threads.active seq_cst, align 64
  %done = icmp eq i32 %active, 0
  br i1 %done, label %end, label %spin
spin:
  %later = call i32 @refcomp.threads.spin(ptr @refcomp.threads.active, i32 %active)
  %changed = icmp ne i32 %later, %active
  br i1 %changed, label %wait, label %doze
doze:
  store atomic i32 1, ptr @refcomp.threads.awaited seq_cst, align 4
  call void @refcomp.threads.sleep(ptr @refcomp.threads.active, i32 %active)
  store atomic i32 0, ptr @refcomp.threads.awaited seq_cst, align 4
  br label %wait
end:
  store atomic i32 0, ptr @refcomp.threads.busy seq_cst, align 64
  ret void
}

declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)

attributes #0 = { nounwind "no-builtin-memcpy" }
attributes #1 = { nounwind readnone willreturn }
