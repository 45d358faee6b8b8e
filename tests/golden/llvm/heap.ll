target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @heap(ptr noalias %A, ptr noalias %B, i64 %n, i64 %m, i32 %num_threads) #0 {
entry:
  %status = alloca i32, align 4
  store i32 0, ptr %status, align 4
  %.1.extent = call i64 @llvm.smax.i64(i64 %n, i64 0)
  %.1.times = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 2, i64 %.1.extent)
  %.1.low = extractvalue { i64, i1 } %.1.times, 0
  %.1.overflow = extractvalue { i64, i1 } %.1.times, 1
  %.2 = select i1 %.1.overflow, i64 -1, i64 %.1.low
  %.3.extent = call i64 @llvm.smax.i64(i64 %m, i64 0)
  %.3.times = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %.2, i64 %.3.extent)
  %.3.low = extractvalue { i64, i1 } %.3.times, 0
  %.3.overflow = extractvalue { i64, i1 } %.3.times, 1
  %.4 = select i1 %.3.overflow, i64 -1, i64 %.3.low
  %.5.more = call i64 @llvm.uadd.sat.i64(i64 %.4, i64 64)
  %.5 = and i64 %.5.more, -64
  %T = call ptr @aligned_alloc(i64 64, i64 %.5)
  %T.missing = icmp eq ptr %T, null
  br i1 %T.missing, label %heap.6.failed, label %heap.6.body
heap.6.failed:
  store i32 1, ptr %status, align 4
  br label %heap.6.end
heap.6.body:
  %.7 = mul i64 %n, %m
  br label %for.8.entry
for.8.entry:
  br label %for.8.head
for.8.head:
  %i = phi i64 [ 0, %for.8.entry ], [ %i.next, %for.8.latch ]
  %i.more = icmp slt i64 %i, %.7
  br i1 %i.more, label %for.8.body, label %for.8.end
for.8.body:
  %.9 = mul i64 %n, %m
  %.10 = sub i64 %.9, 1
  %.11 = sub i64 %.10, %i
  %.12.at = getelementptr i16, ptr %A, i64 %.11
  %.12 = load i16, ptr %.12.at, align 2
  %.13.at = getelementptr i16, ptr %T, i64 %i
  store i16 %.12, ptr %.13.at, align 2
  br label %for.8.latch
for.8.latch:
  %i.next = add i64 %i, 1
  br label %for.8.head
for.8.end:
  %.14 = mul i64 %n, %m
  br label %for.15.entry
for.15.entry:
  br label %for.15.head
for.15.head:
  %i.1 = phi i64 [ 0, %for.15.entry ], [ %i.1.next, %for.15.latch ]
  %i.1.more = icmp slt i64 %i.1, %.14
  br i1 %i.1.more, label %for.15.body, label %for.15.end
for.15.body:
  %.16.at = getelementptr i16, ptr %T, i64 %i.1
  %.16 = load i16, ptr %.16.at, align 2
  %.17 = add i16 %.16, 1
  %.18.at = getelementptr i16, ptr %B, i64 %i.1
  store i16 %.17, ptr %.18.at, align 2
  br label %for.15.latch
for.15.latch:
  %i.1.next = add i64 %i.1, 1
  br label %for.15.head
for.15.end:
  call void @free(ptr %T)
  br label %heap.6.end
heap.6.end:
  %result = load i32, ptr %status, align 4
  ret i32 %result
}

declare noalias ptr @aligned_alloc(i64, i64) #0
declare void @free(ptr) #0
declare i64 @llvm.smax.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.uadd.sat.i64(i64, i64)

attributes #0 = { nounwind "no-builtin-memcpy" }
attributes #1 = { nounwind readnone willreturn }
