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

define internal void @parallel.parallel0.entry(ptr %captures) #0 {
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
  %thread = call i32 @omp_get_thread_num()
  %threads = call i32 @omp_get_num_threads()
  %task = zext i32 %thread to i64
  %tasks = zext i32 %threads to i64
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
  call void @GOMP_parallel(ptr @parallel.parallel0.entry, ptr %.1, i32 %num_threads, i32 0)
  br label %region.2.end
region.2.end:
  ret i32 0
}

declare double @exp(double) #1
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num() #0
declare i32 @omp_get_num_threads() #0

attributes #0 = { nounwind }
attributes #1 = { nounwind readnone willreturn }
