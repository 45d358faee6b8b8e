target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define i32 @add(ptr noalias %A, ptr noalias %B, ptr noalias %C, i64 %n, i32 %num_threads) #0 {
entry:
  %.1 = ashr i64 %n, 4
  br label %for.2.entry
for.2.entry:
  br label %for.2.head
for.2.head:
  %i = phi i64 [ 0, %for.2.entry ], [ %i.next, %for.2.latch ]
  %i.more = icmp slt i64 %i, %.1
  br i1 %i.more, label %for.2.body, label %for.2.end
for.2.body:
  %.3 = mul i64 %i, 16
  %.4.at = getelementptr float, ptr %A, i64 %.3
  %.4 = load <16 x float>, ptr %.4.at, align 4
  %.5 = mul i64 %i, 16
  %.6.at = getelementptr float, ptr %B, i64 %.5
  %.6 = load <16 x float>, ptr %.6.at, align 4
  %.7 = fadd <16 x float> %.4, %.6
  %.8 = mul i64 %i, 16
  %.9.at = getelementptr float, ptr %C, i64 %.8
  store <16 x float> %.7, ptr %.9.at, align 4
  br label %for.2.latch
for.2.latch:
  %i.next = add i64 %i, 1
  br label %for.2.head
for.2.end:
  %.10 = ashr i64 %n, 4
  %.11 = mul i64 %.10, 16
  %.12 = and i64 %n, 15
  %.13 = add i64 %.11, %.12
  br label %for.14.entry
for.14.entry:
  br label %for.14.head
for.14.head:
  %i.1 = phi i64 [ %.11, %for.14.entry ], [ %i.1.next, %for.14.latch ]
  %i.1.more = icmp slt i64 %i.1, %.13
  br i1 %i.1.more, label %for.14.body, label %for.14.end
for.14.body:
  %.15.at = getelementptr float, ptr %A, i64 %i.1
  %.15 = load float, ptr %.15.at, align 4
  %.16.at = getelementptr float, ptr %B, i64 %i.1
  %.16 = load float, ptr %.16.at, align 4
  %.17 = fadd float %.15, %.16
  %.18.at = getelementptr float, ptr %C, i64 %i.1
  store float %.17, ptr %.18.at, align 4
  br label %for.14.latch
for.14.latch:
  %i.1.next = add i64 %i.1, 1
  br label %for.14.head
for.14.end:
  ret i32 0
}

attributes #0 = { nounwind "no-builtin-memcpy" }
attributes #1 = { nounwind readnone willreturn }
